/** Queue names: no two of them ever meet in an engine, whatever they look like, and what is no name is refused everywhere. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { MemoryBroker } from "../../adapters/memory.ts";
import { NatsBroker } from "../../adapters/nats/mod.ts";
import {
  CLOCK_TAIL,
  laterTail,
  levelTail,
  namesOf,
  PAUSED_TAIL,
  returnedTail,
} from "../../adapters/nats/names.ts";
import { resolveNatsOptions } from "../../adapters/nats/options.ts";
import { DurableObjectBroker } from "../../runtimes/workers/object_broker.ts";
import { type Broker, type BrokerQueue, isQueueName } from "../../src/broker.ts";
import { queue } from "../../src/mod.ts";
import { eddy } from "../cli/process.ts";
import { ask, openApp, platform, post } from "../http/fixture.ts";
import { claim, job, put, settle } from "../support/conformance_steps.ts";
import { type RedisOverHttp, startRedisOverHttp } from "../support/gateway.ts";
import { Scratch } from "../support/sqlite_scratch.ts";
import { expectClean, text, tried } from "./hostile.ts";

const SETTINGS = { leaseMs: 30_000, requestTimeoutMs: 5_000, dedupeWindowMs: 60_000 };

const plain = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9_-]{1,12}$/),
  fc.stringMatching(/^[A-Za-z0-9_-]{100}$/),
  fc.constantFrom("__proto__", "constructor", "toString", "hasOwnProperty", "valueOf", "-", "_", "0", "-1"),
  fc.constantFrom("queue", "ready", "wake", "dead", "inbox", "jobs", "state", "later", "returned", "news"),
  fc.constantFrom("a_JOBS_b", "JOBS_a", "EDDY_DEAD_a", "EXHAUSTED", "con", "nul", "null", "undefined", "NaN"),
);
/** Two names that differ, often by very little. */
const pair = fc
  .tuple(plain, plain, fc.constantFrom("other", "case", "longer", "prefix"))
  .map(([a, b, how]): [string, string] => {
    if (how === "case") return [a, a === a.toLowerCase() ? a.toUpperCase() : a.toLowerCase()];
    if (how === "longer") return [a, `${a}_`.slice(0, 100)];
    if (how === "prefix") return [a, `${a}-${b}`.slice(0, 100)];
    return [a, b];
  })
  .filter(([a, b]) => a !== b && isQueueName(a) && isQueueName(b));

const invalid = fc
  .oneof(
    text,
    fc.constantFrom("", " ", "a b", "a.b", "a*", ">", "a/b", "a\\b", "{a}", "a:b", "a\n", "\na", "a\u0000"),
    fc.constantFrom("ä", "а", "a\u0301", "q".repeat(101), "%61", "a|b", "a'b", 'a"b', "a;b", "..", "."),
    plain.map((name) => `${name}\n`),
  )
  .filter((name) => !isQueueName(name));

describe("two queues", () => {
  let redis: RedisOverHttp;
  const scratch = new Scratch();
  beforeAll(async () => {
    redis = await startRedisOverHttp();
  });
  afterAll(async () => {
    await redis.stop();
    await scratch.remove();
  });

  /** Does to `a` all that can be done, and sees that `b` has its job, its dead letter and its rights still. */
  async function expectApart(a: BrokerQueue, b: BrokerQueue): Promise<void> {
    await Promise.all([a.open(), b.open()]);
    for (const one of [a, b]) {
      await put(one, job("first", { body: `first of ${one.name}`, dedupe: true }));
      const { deliveries } = await claim(one, 10);
      expect(deliveries.map((delivery) => delivery.body)).toEqual([`first of ${one.name}`]);
      await settle(one, deliveries, { kind: "dead", error: "for the test" });
      await put(one, job("second", { body: `second of ${one.name}`, dedupe: true }));
    }
    await a.pause?.();
    expect(await a.clear?.(["ready", "delayed"])).toBe(1);
    expect(await a.redrive?.({ limit: 10 })).toBe(1);
    expect(await a.clear?.(["ready", "dead"])).toBe(1);
    expect(await a.sizes?.()).toEqual({ ready: 0, delayed: 0, held: 0, dead: 0, paused: true });
    expect(await b.sizes?.()).toEqual({ ready: 1, delayed: 0, held: 0, dead: 1, paused: false });
    const { deliveries } = await claim(b, 10);
    expect(deliveries.map((delivery) => delivery.body)).toEqual([`second of ${b.name}`]);
    await settle(b, deliveries, { kind: "ack" });
    expect(await b.clear?.(["dead"])).toBe(1);
    await a.resume?.();
  }

  const engines: readonly [name: string, runs: number, make: () => Broker][] = [
    ["memory", 200, () => new MemoryBroker({ now: () => platform.now() })],
    ["sqlite", 40, () => scratch.broker()],
    ["redis", 60, () => redis.connect()],
  ];
  for (const [name, runs, make] of engines) {
    test(`never meet in ${name}`, async () => {
      const broker = make();
      const used = new Set<string>();
      await fc.assert(
        fc.asyncProperty(pair, async ([a, b]) => {
          // Every name once: ids that were used before would be kept out.
          if (used.has(a) || used.has(b)) return;
          used.add(a).add(b);
          await expectApart(broker.queue(a, SETTINGS), broker.queue(b, SETTINGS));
        }),
        tried(runs),
      );
      expect(used.size).toBeGreaterThan(runs / 2);
      await broker.close();
      expectClean();
    }, 60_000);
  }

  test("have no key of Redis in common", async () => {
    const reply = await redis.server.command("KEYS", "*");
    const keys = (reply as string[]).filter((key) => key.startsWith("eddy:"));
    expect(keys.length).toBeGreaterThan(50);
    for (const key of keys) expect(key).toMatch(/^eddy:\{[A-Za-z0-9_-]{1,100}\}:[a-z0-2:]+/);
  });

  test("have no stream and no subject of NATS in common, and neither hears the other", () => {
    fc.assert(
      fc.property(pair, fc.stringMatching(/^[A-Za-z0-9_-]{1,60}$/), ([a, b], prefix) => {
        const [ours, theirs] = [namesOf(prefix, a), namesOf(prefix, b)];
        const streams = [ours.jobs, ours.dead, ours.exhausted, theirs.jobs, theirs.dead, theirs.exhausted];
        expect(new Set(streams).size).toBe(6);
        for (const stream of streams) expect(stream).toMatch(/^[A-Za-z0-9_-]+$/);
        const tails = [levelTail(0), levelTail(1), levelTail(2), returnedTail(0), PAUSED_TAIL, CLOCK_TAIL];
        const subjects = [...tails, laterTail(1_700_000_000_000, 1, "u")].map(
          (tail) => theirs.subject + tail,
        );
        subjects.push(theirs.deadSubject, `${theirs.news}.high`);
        for (const subject of subjects) {
          expect(subject).toMatch(/^[a-z0-9_-]+(\.[A-Za-z0-9_-]+)+$/);
          for (const heard of [ours.subject, ours.deadSubject, ours.news]) {
            expect(subject === heard || subject.startsWith(`${heard}.`)).toBe(false);
          }
        }
      }),
      tried(2_000),
    );
  });

  test("have a source in NATS only if they were given one", () => {
    const given = { stream: "S", consumer: "c" };
    const own = JSON.parse('{"__proto__":{"stream":"S","consumer":"c"}}') as Record<string, typeof given>;
    const { sources } = resolveNatsOptions({ url: "ws://127.0.0.1:1", sources: { mine: given, ...own } });
    for (const name of ["constructor", "toString", "hasOwnProperty", "valueOf"]) {
      expect(sources[name]).toBeUndefined();
    }
    expect(sources.mine).toEqual(given);
  });
});

describe("what is no name", () => {
  const scratch = new Scratch();
  afterAll(() => scratch.remove());
  const brokers: readonly Broker[] = [
    new MemoryBroker({ now: () => 0 }),
    scratch.broker(),
    new NatsBroker({ url: "ws://127.0.0.1:1" }),
    new DurableObjectBroker({ namespace: { idFromName: (name: string) => name, get: () => ({}) } }),
  ];

  test("names no queue, in code and with any broker, and is not told at length", () => {
    fc.assert(
      fc.property(invalid, (name) => {
        expect(() => queue(name)).toThrow(/^Cannot name a queue: /);
        for (const broker of brokers) {
          let thrown: unknown;
          try {
            broker.queue(name, SETTINGS);
          } catch (error) {
            thrown = error;
          }
          expect(thrown).toBeInstanceOf(RangeError);
          expect((thrown as Error).message).toMatch(/^Cannot open the queue: name is ".*"; it must/);
          expect((thrown as Error).message.length).toBeLessThan(500);
        }
      }),
      tried(500),
    );
  });

  test("is not found by HTTP, on any path", async () => {
    const app = openApp({ definition: undefined as never });
    await fc.assert(
      fc.asyncProperty(invalid, async (name) => {
        const base = `/v1/queues/${encodeURIComponent(name.toWellFormed())}`;
        for (const answer of [
          await post(app, `${base}/jobs`, "{}"),
          await post(app, `${base}/pause`),
          await post(app, `${base}/redrive`),
          await post(app, `${base}/clear`, '{"states":["ready"]}'),
          await ask(app, `${base}/dead`),
        ]) {
          expect(answer.status).toBe(404);
          expect(["unknown-queue", "not-found"]).toContain(String(answer.json.code));
        }
      }),
      tried(300),
    );
  });

  test("is refused by the command", async () => {
    for (const name of ["a b", "../a", "a\nb", "ä"]) {
      const ended = await eddy(["stats", name, "--broker", "memory:"]);
      expect([ended.code, ended.out]).toEqual([2, ""]);
      expect(ended.err).toStartWith("Cannot ");
    }
  }, 60_000);
});
