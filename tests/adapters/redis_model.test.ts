/**
 * The Redis adapter against the memory adapter, step by step: whatever is done, both answer the same.
 *
 * Time passes for both together: for the memory broker by its clock, for Redis by setting every deadline and due time back.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { MemoryBroker } from "../../adapters/memory.ts";
import type { BrokerQueue, Delivery, JobState, NewJob, Settlement, Verdict } from "../../src/broker.ts";
import { redisForFile } from "../support/redis_fixture.ts";

const SETTINGS = { leaseMs: 5000, requestTimeoutMs: 10_000, dedupeWindowMs: 600_000 };
/** More than a lease and every delay, and, with the few passes of a run, less than a lease is remembered for. */
const PASS_MS = 7000;
const MOST_PASSES = 7;

const redis = redisForFile();

type Step =
  | {
      kind: "enqueue";
      jobs: { name: number; priority: "high" | "normal" | "low"; delayed: boolean; dedupe: boolean }[];
      again: boolean;
    }
  | { kind: "claim"; max: number; again: number | undefined }
  | { kind: "settle"; picks: { which: number; verdict: Verdict }[]; thenClaim: number | undefined }
  | { kind: "whole"; which: number; verdict: Verdict }
  | { kind: "renew"; which: number[] }
  | { kind: "abandon"; which: number[] }
  | { kind: "redrive"; limit: number; names: number[] | undefined }
  | { kind: "clear"; states: ("ready" | "delayed" | "dead")[] }
  | { kind: "pause"; on: boolean }
  | { kind: "peek"; state: JobState; limit: number }
  | { kind: "pass" };

const which = fc.nat({ max: 200 });
const verdicts = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Verdict>({ kind: "ack" }) },
  { weight: 3, arbitrary: fc.constant<Verdict>({ kind: "release" }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom<Verdict>({ kind: "retry", delayMs: 0 }, { kind: "retry", delayMs: 6000 }),
  },
  { weight: 2, arbitrary: fc.constant<Verdict>({ kind: "dead", error: 'why\n"so" ß' }) },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("enqueue" as const),
      jobs: fc.array(
        fc.record({
          name: fc.nat({ max: 30 }),
          priority: fc.constantFrom("high" as const, "normal" as const, "normal" as const, "low" as const),
          delayed: fc.boolean(),
          dedupe: fc.boolean(),
        }),
        { minLength: 1, maxLength: 12 },
      ),
      again: fc.boolean(),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("claim" as const),
      max: fc.integer({ min: 1, max: 9 }),
      again: fc.option(which, { nil: undefined, freq: 4 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("settle" as const),
      picks: fc.array(fc.record({ which, verdict: verdicts }), { minLength: 1, maxLength: 6 }),
      thenClaim: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("whole" as const), which, verdict: verdicts }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("renew" as const), which: fc.array(which, { maxLength: 3 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("abandon" as const), which: fc.array(which, { maxLength: 3 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("redrive" as const),
      limit: fc.integer({ min: 1, max: 5 }),
      names: fc.option(fc.array(fc.nat({ max: 30 }), { maxLength: 5 }), { nil: undefined }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("clear" as const),
      states: fc.uniqueArray(fc.constantFrom("ready" as const, "delayed" as const, "dead" as const)),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("pause" as const), on: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("peek" as const),
      state: fc.constantFrom<JobState>("ready", "delayed", "held", "dead"),
      limit: fc.constant(1000),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: "pass" as const }) },
);

/** One broker, and the deliveries it gave: tokens are its own, so each broker settles with what it handed out itself. */
class Side {
  readonly queue: BrokerQueue;
  readonly pass: () => Promise<void>;
  readonly handed: Delivery[] = [];
  readonly leases: string[] = [];

  constructor(queue: BrokerQueue, pass: () => Promise<void>) {
    this.queue = queue;
    this.pass = pass;
  }

  async take(step: Step, n: number): Promise<unknown> {
    const { queue } = this;
    switch (step.kind) {
      case "enqueue": {
        const jobs = step.jobs.map(
          (one): NewJob => ({
            id: `j${one.name}`,
            body: `${n} ${one.name} ß`,
            headers: one.name % 3 === 0 ? { n: String(n) } : {},
            priority: one.priority,
            // One delay for all: on a real clock, two that differ by less than a step takes would come in either order.
            delayMs: one.delayed && one.name % 2 === 0 ? 1000 : 0,
            dedupe: one.dedupe,
          }),
        );
        const request = step.again && n > 0 ? `request-${n - 1}` : `request-${n}`;
        return queue.enqueue(request, jobs);
      }
      case "claim":
        return this.#claim(step.max, step.again === undefined ? undefined : this.#lease(step.again), n);
      case "settle": {
        const settle = step.picks.flatMap(({ which: pick, verdict }): Settlement[] => {
          const delivery = this.handed[pick % Math.max(1, this.handed.length)];
          return delivery === undefined ? [] : [{ delivery, verdict }];
        });
        if (step.thenClaim === undefined) return queue.settle(settle);
        const leaseId = `lease-${n}`;
        const claim = { leaseId, max: step.thenClaim, waitMs: 0 };
        const reply = await queue.exchange!({ settle, renew: [], claim });
        return [reply.settled, this.#got(leaseId, reply.claimed?.deliveries ?? [])];
      }
      case "whole": {
        const leaseId = this.#lease(step.which);
        const all = new Map(
          this.handed.filter((one) => one.leaseId === leaseId).map((one) => [one.token, one]),
        );
        return queue.settle([...all.values()].map((delivery) => ({ delivery, verdict: step.verdict })));
      }
      case "renew":
        return queue.renew(step.which.map((one) => this.#lease(one)));
      case "abandon":
        return queue.abandon!(step.which.map((one) => this.#lease(one)));
      case "redrive":
        return queue.redrive!({
          limit: step.limit,
          ...(step.names && { ids: step.names.map((name) => `j${name}`) }),
        });
      case "clear":
        return queue.clear!(step.states);
      case "pause":
        return step.on ? queue.pause!() : queue.resume!();
      case "peek": {
        const jobs = await queue.peek!(step.state, step.limit);
        return jobs.map(({ id, state, attempts, priority, headers, body, error }) => {
          return { id, state, attempts, priority, headers: { ...headers }, body, error };
        });
      }
      case "pass":
        return this.pass();
    }
  }

  #lease(pick: number): string {
    return this.leases[pick % Math.max(1, this.leases.length)] ?? "lease-none";
  }

  async #claim(max: number, again: string | undefined, n: number): Promise<unknown> {
    const leaseId = again ?? `lease-${n}`;
    return this.#got(leaseId, (await this.queue.claim({ leaseId, max, waitMs: 0 })).deliveries);
  }

  #got(leaseId: string, deliveries: readonly Delivery[]): unknown {
    if (!this.leases.includes(leaseId)) this.leases.push(leaseId);
    this.handed.push(...deliveries);
    return deliveries.map(({ id, attempt, suspect, headers, body, priority }) => {
      return { id, leaseId, attempt, suspect, headers: { ...headers }, body, priority };
    });
  }
}

/** Sets every deadline and due time of a queue back. */
const SHIFT = `
for _, key in ipairs(KEYS) do
  local list = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for i = 1, #list, 2 do redis.call('ZINCRBY', key, '-' .. ARGV[1], list[i]) end
end`;

let serial = 0;

async function sides(): Promise<[Side, Side]> {
  serial += 1;
  const name = `model-${serial}`;
  let nowMs = 0;
  const memory = new MemoryBroker({ now: () => nowMs }).queue(name, SETTINGS);
  const remote = redis.connect().queue(name, SETTINGS);
  await memory.open();
  await remote.open();
  const base = `eddy:{${name}}:`;
  return [
    new Side(memory, async () => {
      nowMs += PASS_MS;
    }),
    new Side(remote, async () => {
      await redis.server.command("EVAL", SHIFT, "2", `${base}leases`, `${base}delayed`, String(PASS_MS));
    }),
  ];
}

test("both answer the same, whatever is done", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60, size: "max" }), async (steps) => {
      const [memory, remote] = await sides();
      let passes = 0;
      for (let n = 0; n < steps.length; n++) {
        const one = steps[n] as Step;
        if (one.kind === "pass" && ++passes > MOST_PASSES) continue;
        const expected = await memory.take(one, n);
        const actual = await remote.take(one, n);
        expect(actual).toEqual(expected);
        expect(await remote.queue.sizes!()).toEqual(await memory.queue.sizes!());
      }
    }),
    { numRuns: 120 },
  );
}, 120_000);
