/** Hostile bytes to whatever reads stored jobs: a value or a sentence, never a crash, and nothing of them in the sentence. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseAckSubject } from "../../adapters/nats/ack_subject.ts";
import { Address } from "../../adapters/nats/address.ts";
import { EncodedHeaders, errorHeader, H, ownHeaders, readEnvelope } from "../../adapters/nats/envelope.ts";
import { parseLater } from "../../adapters/nats/names.ts";
import { bodyOf } from "../../adapters/nats/text.ts";
import { harmless } from "../../adapters/redis/failure.ts";
import { readPeeked } from "../../adapters/redis/peeked.ts";
import { newRecord, readRecord } from "../../adapters/redis/record.ts";
import { INCOMPLETE, ReplyReader } from "../../runtimes/bun/gateway/resp.ts";
import { isHeaderValue, isJobId, type JobState } from "../../src/broker.ts";
import { type Codec, decodeBody, encodeBody } from "../../src/codec.ts";
import { bytes, job } from "../support/conformance_steps.ts";
import { BODY, body, expectClean, expectNoCanary, text, tried } from "./hostile.ts";

const CODECS: readonly Codec[] = ["json", "text", "bytes"];
const anyId = fc.stringMatching(/^[!-{}~]{1,40}$/);
const sayable = fc.stringMatching(/^[\t\x20-\x7e]{0,40}$/);
const headerName = fc.oneof(
  fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,20}$/),
  fc.constantFrom("constructor", "eddy-id", "nats-msg-id", "content-length"),
);

describe("a codec", () => {
  test("reads any body, or says in a sentence why it does not", () => {
    fc.assert(
      fc.property(body, fc.constantFrom(...CODECS), (stored, codec) => {
        let value: unknown;
        try {
          value = decodeBody(codec, stored);
        } catch (error) {
          expect(error).toBeInstanceOf(TypeError);
          expect((error as Error).message).toMatch(/^Cannot read the body as (JSON|text): .*; .*$/);
          expectNoCanary(String((error as Error).stack));
          return;
        }
        // Half a surrogate pair has no bytes to come back as.
        if (codec === "json" || (typeof stored === "string" && !stored.isWellFormed())) return;
        expect(bytes(encodeBody(codec, value))).toEqual(bytes(stored));
      }),
      tried(3_000),
    );
    expectClean();
  });

  test("brings values back as they were", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string({ unit: "grapheme" }), fc.uint8Array(), (value, some, raw) => {
        const whole: unknown = JSON.parse(JSON.stringify(value));
        expect(decodeBody("json", encodeBody("json", value))).toEqual(whole);
        expect(decodeBody("text", bytes(encodeBody("text", some)))).toBe(some);
        expect(decodeBody("bytes", encodeBody("bytes", raw))).toEqual(raw);
      }),
      tried(1_000),
    );
  });

  test("says of a value without a form why, and nothing of it", () => {
    const circle: Record<string, unknown> = { [BODY]: BODY };
    circle.self = circle;
    const thrower = {
      toJSON() {
        throw new Error(BODY);
      },
    };
    for (const codec of CODECS) {
      for (const value of [
        circle,
        thrower,
        10n,
        Symbol(BODY),
        () => BODY,
        undefined,
        `${BODY}\ud800`,
        [BODY],
      ]) {
        let told = "";
        try {
          encodeBody(codec, value);
        } catch (error) {
          expect(error).toBeInstanceOf(TypeError);
          told = String((error as Error).stack);
          expect((error as Error).cause).toBeUndefined();
        }
        expectNoCanary(told);
      }
    }
  });
});

describe("a record of Redis", () => {
  /** A good record with something put in, taken out or written over. */
  const mangled = fc
    .tuple(anyId, body, text, fc.nat(), fc.nat(40))
    .map(([id, stored, rubbish, where, cut]) => {
      const record = `000000000007|1700000000000|${newRecord(job(id, { body: stored, headers: { trace: "a" } }))}`;
      const at = where % (record.length + 1);
      return record.slice(0, at) + rubbish + record.slice(at + cut);
    });

  test("is read however it was mangled", () => {
    fc.assert(
      fc.property(fc.oneof(mangled, text), (record) => {
        const read = readRecord(record);
        expect(read.id === "" || isJobId(read.id)).toBe(true);
        expect(["high", "normal", "low"]).toContain(read.priority);
        expectNoCanary(read.broken ?? "");
      }),
      tried(3_000),
    );
    expectClean();
  });

  test("is peeked however it was mangled", () => {
    const states = fc.constantFrom<JobState>("ready", "delayed", "held", "dead");
    fc.assert(
      fc.property(states, fc.array(fc.oneof(mangled, text), { maxLength: 4 }), (state, found) => {
        for (const one of readPeeked(state, found)) expect(one.id).not.toBe("");
      }),
      tried(1_000),
    );
  });

  test("and what its server says of a failure are told without the command", () => {
    fc.assert(
      fc.property(
        text,
        fc.constantFrom("ERR ", "WRONGTYPE ", "NOPERM ", "", "ERR unknown command "),
        (some, code) => {
          const told = harmless(`${code}${some} '${BODY}', with args beginning with: '${BODY}'`);
          expectNoCanary(told);
          expect(told.length).toBeLessThan(100);
        },
      ),
      tried(1_000),
    );
  });
});

describe("an envelope of NATS", () => {
  const encoded = (list: readonly (readonly [string, string])[]) =>
    new TextDecoder().decode(new EncodedHeaders(list).encode());

  test("is read whatever its headers are", () => {
    const name = fc.oneof(fc.constantFrom(...Object.values(H), "__proto__", "constructor", "X-Y"), text);
    fc.assert(
      fc.property(fc.array(fc.tuple(name, fc.oneof(text, body.map(String)))), (list) => {
        const envelope = readEnvelope(encoded(list));
        expect(envelope.id === undefined || isJobId(envelope.id)).toBe(true);
        expect(envelope.attemptsBefore).toBeGreaterThanOrEqual(0);
        for (const value of Object.values(envelope.headers)) expect(value).toBeString();
      }),
      tried(3_000),
    );
    expectClean();
  });

  test("lets no header's value begin another header", () => {
    fc.assert(
      fc.property(
        fc.dictionary(headerName, fc.oneof(text, sayable), { maxKeys: 4 }),
        text,
        (headers, error) => {
          const list = [...ownHeaders(headers), [H.error, errorHeader(error)] as const];
          const block = encoded(list);
          expect(block.split("\r\n")).toHaveLength(list.length + 3);
          const read = readEnvelope(block);
          // What no producer could have said is not read either.
          const kept = Object.entries(headers).filter(([, value]) => isHeaderValue(value));
          expect({ ...read.headers }).toEqual(Object.fromEntries(kept));
          expect(read.error).toBe(error.slice(0, 1_000).toWellFormed());
        },
      ),
      tried(2_000),
    );
  });

  test("and its subjects are told apart from rubbish", () => {
    fc.assert(
      fc.property(text, fc.uint8Array(), (some, raw) => {
        for (const subject of [
          some,
          `$JS.ACK.${some}`,
          `eddy.jobs.a.later.${some}`,
          `$JS.ACK.a.b.1.2.3.${some}`,
        ]) {
          parseAckSubject(Address.of(subject));
          parseLater(subject);
        }
        expect(bytes(bodyOf(raw))).toEqual(new Uint8Array(raw));
      }),
      tried(1_000),
    );
  });
});

test("an answer of Redis is read, waited for, or refused", () => {
  const rubbish = fc.oneof(
    fc.uint8Array({ maxLength: 60 }),
    text.map((some) => new TextEncoder().encode(`$${some.length}\r\n${some}\r\n`)),
    fc
      .constantFrom(
        ":x\r\n",
        "*x\r\n",
        "$-9\r\n",
        "*-9\r\n",
        `:${"9".repeat(40)}\r\n`,
        "-\r\n",
        `%${BODY}\r\n`,
      )
      .map((some) => new TextEncoder().encode(some)),
  );
  fc.assert(
    fc.property(fc.array(rubbish, { maxLength: 4 }), fc.boolean(), (chunks, base64) => {
      const reader = new ReplyReader();
      try {
        for (const chunk of chunks) {
          reader.push(chunk);
          for (let i = 0; i < 100 && reader.read({ base64, okDepth: 0 }) !== INCOMPLETE; i += 1);
          reader.keep();
        }
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
        expectNoCanary(String(error));
      }
    }),
    tried(2_000),
  );
});
