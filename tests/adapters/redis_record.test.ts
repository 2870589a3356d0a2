/** The pure parts of the Redis adapter: records, parts, settlements, the guard and options. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { fromBase64, fromEscaped, toBase64 } from "../../adapters/redis/bytes.ts";
import { baseline, lossAtRestart, objection, readSigns } from "../../adapters/redis/guard.ts";
import { resolveRedisOptions } from "../../adapters/redis/options.ts";
import { splitIntoParts } from "../../adapters/redis/parts.ts";
import { newRecord, readRecord } from "../../adapters/redis/record.ts";
import { planSettlements, tokensOf } from "../../adapters/redis/settlements.ts";
import type { Delivery, NewJob, Priority, Settlement, Verdict } from "../../src/broker.ts";
import { bytes, job } from "../support/conformance_steps.ts";

const priorities = fc.constantFrom<Priority>("high", "normal", "low");
const idText = fc.stringMatching(/^[!-{}~]{1,40}$/);
const bodies = fc.oneof(fc.string({ unit: "binary" }), fc.string(), fc.uint8Array({ maxLength: 300 }));

describe("records", () => {
  test("what was written is read, whatever the body", () => {
    fc.assert(
      fc.property(
        idText,
        bodies,
        priorities,
        fc.dictionary(fc.stringMatching(/^[a-z]{1,9}$/), fc.stringMatching(/^[ -~]{0,30}$/)),
        (id, body, priority, headers) => {
          const record = `000000000007|1700000000000|${newRecord(job(id, { body, priority, headers }))}`;
          const read = readRecord(record);
          expect(read.broken).toBeUndefined();
          expect(read.id).toBe(id);
          expect(read.priority).toBe(priority);
          expect({ ...read.headers }).toEqual({ ...headers });
          expect(bytes(read.body)).toEqual(bytes(typeof body === "string" ? body.toWellFormed() : body));
          expect([read.place, read.enqueuedAt, read.attempts, read.suspect]).toEqual([
            7,
            1_700_000_000_000,
            0,
            false,
          ]);
        },
      ),
    );
  });

  test("any text at all can be read, and what is no record is broken", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const read = readRecord(text);
        expect(read.broken).toBeString();
        expect(read.body).toBe(text);
      }),
    );
    for (const text of [
      "",
      "|||||||\n",
      "1|2|3|0|1|t|\n",
      "1|2|3|0|1|t|a b|\nx",
      "1|2|3|0|9|t|a|\nx",
      "1|2|x|0|1|t|a|\nx",
      "1||3|0|1|t|a|\nx",
      "0x1|2|3|0|1|t|a|\nx",
      "1|2|3|0|1|t|a|x",
    ]) {
      expect(readRecord(text).broken).toBeString();
    }
    expect(readRecord("1|2|3|0|1|t|a|[]\nx")).toMatchObject({ id: "a", broken: expect.any(String) });
    expect(readRecord("1|2|3|0|1|b|a|\n!!")).toMatchObject({
      id: "a",
      body: "!!",
      broken: expect.any(String),
    });
    expect(readRecord("1|2|3|0|1|T|a|\nx")).toMatchObject({ id: "a", body: "x", broken: expect.any(String) });
    expect(readRecord("1|2|3|1|1|t|a|\nx|y\nz")).toMatchObject({ id: "a", suspect: true, body: "x|y\nz" });
  });

  test("bytes survive base64 and the script's escape", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 70_000, size: "max" }), (given) => {
        expect(fromBase64(toBase64(given))).toEqual(given);
      }),
      { numRuns: 20 },
    );
    fc.assert(
      fc.property(fc.uint8Array(), (given) => {
        let escaped = "";
        for (const byte of given) {
          escaped +=
            byte > 127 || byte === 0x25
              ? `%${byte.toString(16).padStart(2, "0")}`
              : String.fromCharCode(byte);
        }
        expect(fromEscaped(escaped)).toEqual(given);
      }),
    );
  });
});

describe("parts", () => {
  test("every job is in one part, in order, and each part fits", () => {
    const limit = 60_000;
    fc.assert(
      fc.property(
        fc.array(fc.nat({ max: 4000 }), { minLength: 1, maxLength: 40 }),
        fc.constantFrom("x", "\u0001", "ß"),
        (sizes, fill) => {
          const jobs = sizes.map((size, n): NewJob => job(`j${n}`, { body: fill.repeat(size) }));
          const parts = splitIntoParts(jobs, limit);
          expect(parts.flat().filter((_, at) => at % 2 === 1)).toEqual(jobs.map(newRecord));
          for (const part of parts) {
            if (part.length > 2) expect(Buffer.byteLength(JSON.stringify(part))).toBeLessThan(limit);
          }
        },
      ),
    );
  });

  test("few small jobs stay together", () => {
    expect(splitIntoParts([job("a"), job("b", { delayMs: 2.5, dedupe: true })], 8_000_000)).toEqual([
      ["0", "0|0|1|t|a|\na", "3u", "0|0|1|t|b|\nb"],
    ]);
  });
});

describe("settlements", () => {
  const delivery = (leaseId: string, slot: number, slots: number): Delivery => ({
    id: `${leaseId}-${slot}`,
    leaseId,
    token: tokensOf(slots)[slot - 1] as string,
    attempt: 1,
    suspect: false,
    enqueuedAt: 0,
    headers: {},
    body: "",
    priority: "normal",
  });
  const settlement = (one: Delivery, verdict: Verdict = { kind: "ack" }): Settlement => ({
    delivery: one,
    verdict,
  });

  test("a lease acked whole is one word, in whatever order", () => {
    const plan = planSettlements([3, 1, 2].map((slot) => settlement(delivery("a", slot, 3))));
    expect(plan.args).toEqual(["1", "a", "3", "0"]);
    expect(plan.results(["D"])).toEqual(["done", "done", "done"]);
    // Letters come by slot, results go by the request's order.
    expect(plan.results(["ldd"])).toEqual(["done", "lost", "done"]);
  });

  test("anything else is told verdict by verdict", () => {
    const twice = [1, 1].map((slot) => settlement(delivery("a", slot, 2)));
    expect(planSettlements(twice).args).toEqual(["1", "a", "0", "2", "1a", "1a"]);
    const mixed = [
      settlement(delivery("a", 1, 3), { kind: "retry", delayMs: 1.2 }),
      settlement(delivery("b", 1, 1)),
      settlement(delivery("a", 3, 3), { kind: "dead", error: "no\n" }),
      settlement(delivery("a", 2, 3), { kind: "release" }),
    ];
    const plan = planSettlements(mixed);
    expect(plan.args).toEqual(["2", "a", "0", "3", "1r2", "3d", '"no\\n"', "a-3", "2g", "b", "1", "0"]);
    expect(plan.results(["dld", "L"])).toEqual(["done", "lost", "lost", "done"]);
    const unrun = settlement(delivery("a", 1, 1), { kind: "dead", error: "no", attempts: 12 });
    expect(planSettlements([unrun]).args).toEqual(["1", "a", "0", "1", "1d12", '"no"', "a-1"]);
  });

  test("what joins the queue's tail does so in the request's order, over leases that alternate", () => {
    const retry: Verdict = { kind: "retry", delayMs: 0 };
    const plan = planSettlements([
      settlement(delivery("a", 1, 2), retry),
      settlement(delivery("c", 1, 2)),
      settlement(delivery("b", 1, 1), retry),
      settlement(delivery("a", 2, 2)),
      settlement(delivery("c", 2, 2)),
    ]);
    expect(plan.args.join(" ")).toBe("4 a 0 1 1r0 c 2 0 b 0 1 1r0 a 0 1 2a");
    expect(plan.results(["d", "ld", "l", "d"])).toEqual(["done", "lost", "lost", "done", "done"]);
  });

  test("an answer that does not fit is none", () => {
    const plan = planSettlements([settlement(delivery("a", 1, 2))]);
    for (const letters of [undefined, [], ["dd"], [1], ["d", "d"]])
      expect(plan.results(letters)).toBeUndefined();
  });
});

describe("the guard", () => {
  test("reads INFO, and objects to eviction alone", () => {
    const signs = readSigns("# Stats\r\nevicted_keys:3\r\n", "# Memory\r\nmaxmemory_policy:noeviction\r\n");
    expect(signs).toEqual({ evicted: 3, policy: "noeviction" });
    expect(objection(signs, 3)).toBeUndefined();
    expect(objection(signs, 2)).toContain("evicted_keys");
    expect(objection({ ...signs, policy: "volatile-lru" }, 3)).toContain("noeviction");
    expect(objection({ policy: undefined, evicted: undefined }, 0)).toBeUndefined();
    expect(lossAtRestart("# Persistence\r\nloading:0\r\naof_enabled:0\r\n")).toContain("appendonly");
    expect(lossAtRestart("# Persistence\r\naof_enabled:1\r\n")).toBeUndefined();
    expect(lossAtRestart("")).toBeUndefined();
    // A server that was restarted counts from 0 again; what it evicts then is noticed.
    expect(baseline(3, { policy: undefined, evicted: 0 })).toBe(0);
    expect(baseline(3, { policy: undefined, evicted: undefined })).toBe(3);
  });
});

describe("options", () => {
  test("are filled in and frozen", () => {
    const resolved = resolveRedisOptions({ url: "https://host/", token: "t" });
    expect(resolved).toMatchObject({
      url: "https://host",
      prefix: "eddy",
      onEvictions: "refuse",
      verifyEveryMs: 60_000,
    });
    expect(Object.isFrozen(resolved)).toBe(true);
  });

  test("are refused without being repeated", () => {
    const good = { url: "https://host", token: "t" };
    const wrong: [object, ErrorConstructor][] = [
      [{ url: "redis://hunter2@host" }, TypeError],
      [{ url: "https://user:hunter2@host" }, TypeError],
      [{ url: "https://host?_token=hunter2" }, TypeError],
      [{ url: "hunter2" }, TypeError],
      [{ token: "" }, TypeError],
      [{ token: "hunter2 hunter2" }, TypeError],
      [{ prefix: "a{b}" }, TypeError],
      [{ verifyEveryMs: 0 }, RangeError],
      [{ maxBodyBytes: Number.NaN }, RangeError],
    ];
    for (const [change, kind] of wrong) {
      let error: unknown;
      try {
        resolveRedisOptions({ ...good, ...change });
      } catch (caught) {
        error = caught;
      }
      expect(error).toBeInstanceOf(kind);
      expect((error as Error).message).toStartWith("Cannot use the Redis broker: ");
      expect((error as Error).message).not.toContain("hunter2");
    }
  });
});
