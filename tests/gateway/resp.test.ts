/** The wire protocol: any reply, cut into any chunks; any command, byte for byte. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  encodeCommand,
  INCOMPLETE,
  type Reply,
  ReplyError,
  ReplyReader,
} from "../../runtimes/bun/gateway/resp.ts";

/** A reply as Redis would send it, and as it should be read in both forms. */
interface Sample {
  readonly wire: Buffer;
  readonly text: Reply;
  readonly base64: Reply;
}

const line = fc.stringMatching(/^[ -~]{0,20}$/);
const leaf: fc.Arbitrary<Sample> = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => ({
    wire: Buffer.concat([Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from("\r\n")]),
    text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes),
    base64: Buffer.from(bytes).toString("base64"),
  })),
  fc.maxSafeInteger().map((n) => ({ wire: Buffer.from(`:${n}\r\n`), text: big(n), base64: big(n) })),
  line.map((text) => ({
    wire: Buffer.from(`+${text}\r\n`),
    text,
    base64: Buffer.from(text).toString("base64"),
  })),
  fc
    .constantFrom("$-1\r\n", "*-1\r\n")
    .map((wire) => ({ wire: Buffer.from(wire), text: null, base64: null })),
  line.map((text) => {
    return { wire: Buffer.from(`-${text}\r\n`), text: new ReplyError(text), base64: new ReplyError(text) };
  }),
);

/** Integers of more than fifteen digits are read as bigint, so none can lose one. */
function big(n: number): number | bigint {
  return String(Math.abs(n)).length > 15 ? BigInt(n) : n;
}

const { reply } = fc.letrec<{ reply: Sample }>((tie) => ({
  reply: fc.oneof(
    { weight: 3, arbitrary: leaf },
    {
      weight: 1,
      arbitrary: fc.array(tie("reply"), { maxLength: 5 }).map((items) => ({
        wire: Buffer.concat([Buffer.from(`*${items.length}\r\n`), ...items.map((item) => item.wire)]),
        text: items.map((item) => item.text),
        base64: items.map((item) => item.base64),
      })),
    },
  ),
}));

/** Feeds bytes in chunks of the given sizes, in memory that is overwritten afterwards, as a socket may. */
function readAll(wire: Buffer, sizes: readonly number[], base64: boolean): Reply[] {
  const reader = new ReplyReader();
  const replies: Reply[] = [];
  for (let at = 0, n = 0; at < wire.length; n++) {
    const size = Math.max(1, sizes[n % Math.max(1, sizes.length)] ?? wire.length);
    const chunk = Buffer.from(wire.subarray(at, at + size));
    at += size;
    reader.push(chunk);
    for (;;) {
      const one = reader.read({ base64, okDepth: -1 });
      if (one === INCOMPLETE) break;
      replies.push(one);
    }
    reader.keep();
    chunk.fill(0x58);
  }
  return replies;
}

describe("replies", () => {
  test("are read whole, however they are cut", () => {
    fc.assert(
      fc.property(
        fc.array(reply, { minLength: 1, maxLength: 6 }),
        fc.array(fc.integer({ min: 1, max: 40 })),
        (samples, sizes) => {
          const wire = Buffer.concat(samples.map((sample) => sample.wire));
          expect(readAll(wire, sizes, false)).toEqual(samples.map((sample) => sample.text));
          expect(readAll(wire, sizes, true)).toEqual(samples.map((sample) => sample.base64));
        },
      ),
      { numRuns: 300 },
    );
  });

  test("what is no RESP2 is an error, not a reply", () => {
    const reader = new ReplyReader();
    reader.push(Buffer.from("HTTP/1.1 400 Bad Request\r\n"));
    expect(() => reader.read({ base64: false, okDepth: 0 })).toThrow("not RESP2");
  });
});

test("commands are encoded byte for byte, half surrogates as what stands for them", () => {
  const argument = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string(),
    fc.constant("\uD800"),
    fc.uint8Array(),
  );
  fc.assert(
    fc.property(fc.array(argument, { minLength: 1 }), (args) => {
      const expected = Buffer.concat([
        Buffer.from(`*${args.length}\r\n`),
        ...args.flatMap((arg) => {
          const bytes = Buffer.from(arg as string);
          return [Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from("\r\n")];
        }),
      ]);
      expect(Buffer.from(encodeCommand(args) as string)).toEqual(expected);
    }),
  );
});
