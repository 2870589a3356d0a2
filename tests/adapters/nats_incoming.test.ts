/** What a server sends over one connection, read past the client library. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Incoming, IncomingReader, statusOf } from "../../adapters/nats/incoming.ts";
import { bodyOf } from "../../adapters/nats/text.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

interface Sent {
  readonly subscription: number;
  readonly subject: string;
  readonly reply: string;
  readonly headers: string;
  readonly body: Uint8Array;
}

function wire({ subscription, subject, reply, headers, body }: Sent): Uint8Array {
  const head = encode(headers);
  const to = reply === "" ? "" : `${reply} `;
  const line =
    headers === ""
      ? `MSG ${subject} ${subscription} ${to}${body.length}\r\n`
      : `HMSG ${subject} ${subscription} ${to}${head.length} ${head.length + body.length}\r\n`;
  return Buffer.concat([encode(line), head, body, encode("\r\n")]);
}

/** Cuts bytes into pieces of these lengths, over and over. */
function pieces(bytes: Uint8Array, lengths: readonly number[]): Uint8Array[] {
  const all: Uint8Array[] = [];
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const to = at + (lengths[n % lengths.length] as number);
    all.push(bytes.slice(at, to));
    at = to;
  }
  return all;
}

const token = fc.stringMatching(/^[A-Za-z0-9_$-]{1,12}$/);
const subject = fc.array(token, { minLength: 1, maxLength: 4 }).map((tokens) => tokens.join("."));
const sent: fc.Arbitrary<Sent> = fc.record({
  subscription: fc.integer({ min: 1, max: 12 }),
  subject,
  reply: fc.oneof(fc.constant(""), subject),
  headers: fc.oneof(
    fc.constant(""),
    fc.constant("NATS/1.0 408 Request Timeout\r\n\r\n"),
    fc.string({ unit: "binary", maxLength: 20 }).map((value) => {
      const plain = value.replace(/[\r\n]/g, "").toWellFormed();
      return `NATS/1.0\r\nname: ${plain}\r\n\r\n`;
    }),
  ),
  // With the protocol's own words and line ends in it.
  body: fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc
      .constantFrom(
        "",
        "\r\n",
        "HMSG a 1 2 3\r\n",
        "PING\r\n",
        '{"n":1}',
        "\ufeffa",
        "\ufffd",
        "a".repeat(2_000),
      )
      .map(encode),
  ),
});
const line = fc.constantFrom(
  "PING\r\n",
  "PONG\r\n",
  "+OK\r\n",
  "-ERR 'Stale Connection'\r\n",
  'INFO {"M":1}\r\n',
);

describe("the reader", () => {
  test("gives each message to its inbox, all else to the library, in order, wherever it is cut", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(sent, line), { maxLength: 20 }),
        fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 5 }),
        (all, lengths) => {
          const ours: Incoming[] = [];
          const others: Uint8Array[] = [];
          const reader = new IncomingReader((bytes) => others.push(bytes));
          // Of twelve subscriptions six are ours.
          for (let n = 1; n <= 12; n += 2) reader.open(n, (message) => ours.push(message));
          const isOurs = (one: Sent | string): one is Sent =>
            typeof one !== "string" && one.subscription % 2 === 1;
          const bytes = Buffer.concat(all.map((one) => (typeof one === "string" ? encode(one) : wire(one))));
          for (const piece of pieces(bytes, lengths)) reader.read(piece);
          const told = ours.map(({ subject, reply, headers, data }) => [
            subject,
            reply?.text ?? "",
            headers,
            Buffer.from(data).toString("hex"),
          ]);
          expect(told).toEqual(
            all
              .filter(isOurs)
              .map(({ subject, reply, headers, body }) => [
                subject,
                reply,
                headers,
                Buffer.from(body).toString("hex"),
              ]),
          );
          // Read at once, with its headers, it is the same.
          for (const message of ours) {
            const { headers, body } = message.read();
            expect([headers, body]).toEqual([message.headers, bodyOf(message.data)]);
            // In bytes of its own as well.
            const own = message.detached();
            expect([own.subject, own.reply?.text, own.read()]).toEqual([
              message.subject,
              message.reply?.text,
              { headers, body },
            ]);
          }
          const rest = all.filter((one) => !isOurs(one));
          expect(
            Buffer.concat(others).equals(
              Buffer.concat(rest.map((one) => (typeof one === "string" ? encode(one) : wire(one as Sent)))),
            ),
          ).toBe(true);
        },
      ),
    );
  });

  test("hands the library whole lines and messages alone", () => {
    const others: string[] = [];
    const reader = new IncomingReader((bytes) => others.push(decode(bytes)));
    for (const part of ["PI", "NG\r\nMSG a 1 3\r", "\nab", "c\r\nPO", "NG\r", "\n"])
      reader.read(encode(part));
    expect(others).toEqual(["PING\r\n", "MSG a 1 3\r\nabc\r\n", "PONG\r\n"]);
  });

  test("a closed inbox's messages are the library's", () => {
    const ours: string[] = [];
    const others: string[] = [];
    const reader = new IncomingReader((bytes) => others.push(decode(bytes)));
    reader.open(7, ({ data }) => ours.push(decode(data)));
    reader.read(encode("MSG a 7 1\r\nx\r\n"));
    reader.close(7);
    reader.read(encode("MSG a 7 1\r\ny\r\n"));
    expect([ours, others]).toEqual([["x"], ["MSG a 7 1\r\ny\r\n"]]);
  });

  test("what is not the protocol is all the library's, which ends the connection", () => {
    for (const rubbish of [
      "MSG a 1\r\n",
      "MSG a 1 x\r\n",
      "HMSG a 1 5\r\n",
      "HMSG a 1 9 5\r\nabcde\r\n",
      "HMSG a 1 -1 5\r\nabcde\r\n",
    ]) {
      const ours: Incoming[] = [];
      let others = "";
      const reader = new IncomingReader((bytes) => {
        others += decode(bytes);
      });
      reader.open(1, (message) => ours.push(message));
      reader.read(encode(`PING\r\n${rubbish}`));
      reader.read(encode("MSG a 1 1\r\nx\r\n"));
      expect(ours).toEqual([]);
      expect(others).toBe(`PING\r\n${rubbish}MSG a 1 1\r\nx\r\n`);
    }
  });

  test("a line without an end is not waited for for ever", () => {
    let others = 0;
    const reader = new IncomingReader((bytes) => {
      others += bytes.length;
    });
    const part = new Uint8Array(300_000).fill(65);
    for (let n = 0; n < 5; n++) reader.read(part);
    expect(others).toBe(1_500_000);
  });

  test("rubbish harms nothing", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 30 }), { maxLength: 10 }), (all) => {
        const reader = new IncomingReader(() => {});
        reader.open(1, () => {});
        for (const bytes of all) reader.read(Buffer.concat([encode("HMSG "), bytes]));
      }),
    );
  });
});

test("a status is told by the headers' first line", () => {
  const of = (headers: string) => statusOf({ headers });
  expect(of("NATS/1.0 404 No Messages\r\n\r\n")).toEqual({ code: 404, description: "No Messages" });
  expect(of("NATS/1.0 503\r\n\r\n")).toEqual({ code: 503, description: "" });
  expect(of("NATS/1.0 409 Message Size\r\nNats-Pending: 1\r\n\r\n")).toEqual({
    code: 409,
    description: "Message Size",
  });
  expect(of("NATS/1.0\r\na: 404\r\n\r\n")).toBeUndefined();
  expect(of("")).toBeUndefined();
});
