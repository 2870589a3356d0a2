/** Protocol lines that leave together. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { Address } from "../../adapters/nats/address.ts";
import { AnswerTail, OutgoingLines } from "../../adapters/nats/outgoing.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const token = fc.stringMatching(/^[A-Za-z0-9_$-]{1,12}$/);
const subject = fc.array(token, { minLength: 1, maxLength: 9 }).map((tokens) => tokens.join("."));
const said = fc.oneof(
  fc.record({
    to: subject,
    word: fc.constantFrom("+ACK", "+WPI", ""),
    reply: fc.option(subject, { nil: undefined }),
  }),
  fc.uint8Array({ maxLength: 9_000 }),
);

test("they leave in the order in which they were written, each time only what is new, in bytes that nobody writes into any more", () => {
  fc.assert(
    fc.property(fc.array(fc.array(said, { maxLength: 30 }), { maxLength: 6 }), (turns) => {
      const lines = new OutgoingLines();
      const taken: [Uint8Array, Buffer][] = [];
      for (const turn of turns) {
        const expected: Uint8Array[] = [];
        for (const one of turn) {
          if (one instanceof Uint8Array) {
            lines.add(one);
            expected.push(one);
            continue;
          }
          // In the middle of what came.
          const came = encode(`HMSG ${one.to} 1 2`);
          lines.addAnswer(new Address(came, 5, came.length - 4), new AnswerTail(one.word, one.reply));
          const reply = one.reply === undefined ? "" : ` ${one.reply}`;
          expected.push(encode(`PUB ${one.to}${reply} ${one.word.length}\r\n${one.word}\r\n`));
        }
        expect(lines.isEmpty).toBe(expected.every(({ length }) => length === 0));
        taken.push([lines.take(), Buffer.concat(expected)]);
        expect(lines.isEmpty).toBe(true);
      }
      for (const [bytes, expected] of taken) expect(expected.equals(bytes)).toBe(true);
    }),
  );
});
