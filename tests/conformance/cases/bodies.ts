import type { RawBody } from "../../../src/broker.ts";
import type { ConformanceCase } from "../../support/conformance.ts";
import { same, that } from "../../support/conformance_assert.ts";
import { bytes, ids, job, put, RETRY, settle, take } from "../../support/conformance_steps.ts";

const ALL_BYTES = Uint8Array.from({ length: 256 }, (_, i) => i);

/** A megabyte that no compression or line ending survives by luck. */
function megabyte(): Uint8Array {
  const filled = new Uint8Array(1024 * 1024);
  let state = 0x9e3779b9;
  for (let i = 0; i < filled.length; i += 1) {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x1656_67b1;
    filled[i] = state >>> 24;
  }
  return filled;
}

/** Bodies that some queue somewhere has bent. Each must come back byte for byte. */
const BODIES: readonly (readonly [string, () => RawBody])[] = [
  ["an empty text", () => ""],
  ["no bytes", () => new Uint8Array()],
  ["a number as text", () => "123"],
  ["null as text", () => "null"],
  ["undefined as text", () => "undefined"],
  ["true as text", () => "true"],
  ["a 64-bit integer as text", () => "9223372036854775807"],
  ["an integer above 2^53 within JSON", () => '{"id":9007199254740993,"minus":-0,"small":1e-7}'],
  ["JSON with its spaces and the order of its keys", () => '{ "b" : 1,\n\t"a" : [ ] , "a" : 2 }'],
  ["a JSON text, quoted", () => '"already quoted \\" \\u0000"'],
  [
    "an emoji and other planes",
    () => "\u{1F680} \u{1F468}\u200D\u{1F469}\u200D\u{1F467} \u{10FFFF} é e\u0301 ß",
  ],
  ["a byte order mark", () => "\uFEFFtext\uFEFF"],
  ["a NUL", () => "\u0000"],
  ["NULs within a text", () => "before\u0000between\u0000"],
  ["line ends of every kind", () => "a\nb\r\nc\rd\u2028e\u2029f\u0085g\n"],
  ["spaces at both ends", () => " \t text \v\f "],
  ["separators", () => "a|b|c:d,e;f\u001fg{h}[i]"],
  ["something like a script", () => "]] return redis.call('FLUSHALL') --[["],
  ["something like SQL", () => "'); DROP TABLE eddy_jobs; -- ? :a @b $c"],
  ["something like a format", () => "%s %d $1 {x} {{y}} \\0 \\x00 \\u0000"],
  ["something like base64", () => "aGVsbG8="],
  ["a continuation byte alone", () => Uint8Array.of(0x80)],
  ["bytes that are no UTF-8", () => Uint8Array.of(0xff, 0xfe, 0xc0, 0xaf, 0xed, 0xa0, 0x80, 0xf5)],
  ["a cut-off emoji", () => Uint8Array.of(0xf0, 0x9f, 0x9a)],
  ["every byte", () => ALL_BYTES],
  ["every byte, backwards", () => ALL_BYTES.slice().reverse()],
  ["a part of a larger buffer", () => ALL_BYTES.subarray(100, 140)],
  ["something like a gzip stream", () => Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3)],
  ["a megabyte of bytes", megabyte],
  ["a megabyte of text", () => "0123456789abcdeé".repeat(61_000)],
];

const exact: readonly ConformanceCase[] = BODIES.map(([name, make]) => ({
  name: `body: ${name} comes back byte for byte`,
  needs: [],
  async run({ queue, other }) {
    const sent = make();
    await put(queue, job("a", { body: sent }));
    const first = await take(other);
    that(first[0] !== undefined, "it came");
    same(bytes(first[0].body), bytes(sent), "the first delivery");
    await settle(other, first, RETRY);
    const second = await take(queue);
    that(second[0] !== undefined, "it came again");
    same(bytes(second[0].body), bytes(sent), "the second delivery");
  },
}));

/** Bodies, headers and ids: exact, whatever way a job goes. */
export const bodyCases: readonly ConformanceCase[] = [
  ...exact,
  {
    name: "body: exact through dead letters, peek and redrive",
    needs: ["peek", "redrive"],
    async run({ queue, other }) {
      const sent = BODIES.map(([, make], i) => job(`a${i}`, { body: make() }));
      const small = sent.filter((one) => bytes(one.body).length < 10_000);
      await put(queue, ...small);
      same(
        (await queue.peek!("ready", 100)).map((one) => bytes(one.body)),
        small.map((one) => bytes(one.body)),
        "ready",
      );
      const deliveries = await take(queue);
      same(
        (await queue.peek!("held", 100)).map((one) => bytes(one.body)),
        small.map((one) => bytes(one.body)),
        "held",
      );
      await settle(queue, deliveries, { kind: "dead", error: "no" });
      same(
        (await other.peek!("dead", 100)).map((one) => bytes(one.body)),
        small.map((one) => bytes(one.body)),
        "dead",
      );
      await other.redrive!({ limit: 100 });
      same(
        (await take(queue)).map((one) => bytes(one.body)),
        small.map((one) => bytes(one.body)),
        "redriven",
      );
    },
  },
  {
    name: "body: many kinds in one batch keep to their own jobs",
    needs: [],
    async run({ queue }) {
      const sent = BODIES.map(([, make], i) => job(`a${i}`, { body: make() }));
      const small = sent.filter((one) => bytes(one.body).length < 10_000);
      await put(queue, ...small);
      const deliveries = await take(queue, small.length);
      same(ids(deliveries), ids(small), "the ids");
      same(
        deliveries.map((one) => bytes(one.body)),
        small.map((one) => bytes(one.body)),
        "the bodies",
      );
    },
  },
  {
    name: "body: changing what was enqueued, or what was delivered, does not change the job",
    needs: [],
    async run({ queue }) {
      const body = Uint8Array.of(1, 2, 3);
      const headers = { kind: "one" };
      await put(queue, job("a", { body, headers }));
      body.fill(9);
      headers.kind = "two";
      const first = await take(queue);
      const delivered = first[0]?.body;
      same(bytes(delivered ?? ""), Uint8Array.of(1, 2, 3), "the first delivery");
      same({ ...first[0]?.headers }, { kind: "one" }, "its headers");
      if (delivered instanceof Uint8Array) delivered.fill(7);
      await settle(queue, first, RETRY);
      same(bytes((await take(queue))[0]?.body ?? ""), Uint8Array.of(1, 2, 3), "the second delivery");
    },
  },
  {
    name: "headers: names and values come back as they were",
    needs: [],
    async run({ queue }) {
      const headers = {
        "content-type": "application/json; charset=utf-8",
        "x-empty": "",
        a: "|",
        "0": "\ttab and  spaces ",
        "x-json": '{"a":[1,"\\"]}',
        "x-long": "~".repeat(4000),
        __proto: "constructor",
        constructor: "x",
        "to-string": "null",
      };
      await put(queue, job("a", { headers }), job("b"));
      const [a, b] = await take(queue);
      same({ ...a?.headers }, headers, "the headers");
      same({ ...b?.headers }, {}, "no headers");
    },
  },
  {
    name: "headers: kept through a retry and a dead letter",
    needs: ["peek", "redrive"],
    async run({ queue }) {
      const headers = { "x-trace": "t-1" };
      await put(queue, job("a", { headers }));
      await settle(queue, await take(queue), RETRY);
      await settle(queue, await take(queue), { kind: "dead", error: "no" });
      same({ ...(await queue.peek!("dead", 1))[0]?.headers }, headers, "dead");
      await queue.redrive!({ limit: 1 });
      same({ ...(await take(queue))[0]?.headers }, headers, "redriven");
    },
  },
  {
    name: "ids: every printable character and the full length",
    needs: ["dedupe"],
    async run({ queue }) {
      const printable = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i))
        .filter((one) => one !== "|")
        .join("");
      const wanted = [
        printable,
        "x".repeat(200),
        "0",
        "-1",
        "1e5",
        "null",
        "{a}",
        "*",
        "a:b",
        "..",
        "%00",
        '"',
      ];
      await put(queue, ...wanted.map((id) => job(id, { dedupe: true })));
      const deliveries = await take(queue);
      same(ids(deliveries), wanted, "the ids");
      await settle(queue, deliveries, { kind: "ack" });
      const answers = await put(queue, ...wanted.map((id) => job(id, { dedupe: true })));
      that(
        answers.every((answer) => answer.duplicate),
        "each is known again",
      );
    },
  },
];
