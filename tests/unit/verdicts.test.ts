import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { seededRandom } from "../../runtimes/simulated.ts";
import { brokerBackoffMs, fullJitter } from "../../src/backoff.ts";
import type { Delivery } from "../../src/broker.ts";
import { JobTimeoutError, PermanentError } from "../../src/errors.ts";
import { type HeldDelivery, HeldLease, type LeaseOwner } from "../../src/held.ts";
import { MAX_SETTLE, Outbox } from "../../src/outbox.ts";
import { fateOf } from "../../src/triage.ts";
import { attemptsUsedUp, type Outcome, verdictOf } from "../../src/verdict.ts";
import { noStrayRejections } from "../support/world.ts";

noStrayRejections();

const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

function delivery(of: Partial<Delivery> = {}): Delivery {
  return {
    id: "a",
    leaseId: "l",
    token: "0",
    attempt: 1,
    suspect: false,
    enqueuedAt: 0,
    headers: {},
    body: "",
    priority: "normal",
    ...of,
  };
}

const owner: LeaseOwner = { leaseMs: 1_000, renews: true, renew: async () => [], lost: () => {} };

function held(leaseId = "l"): HeldDelivery {
  const lease = new HeldLease(leaseId, owner, 1, 0, 1_000, 333);
  return { delivery: delivery({ leaseId }), lease, started: true, over: false };
}

describe("backoff", () => {
  test("is a whole number between 0 and the doubled base, capped", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100_000 }),
        random,
        fc.integer({ min: 0, max: 10_000 }),
        fc.integer({ min: 0, max: 1_000_000 }),
        (attempt, roll, baseMs, maxMs) => {
          const ms = fullJitter(attempt, roll, baseMs, maxMs);
          expect(Number.isInteger(ms)).toBe(true);
          expect(ms).toBeGreaterThanOrEqual(0);
          expect(ms).toBeLessThanOrEqual(Math.min(maxMs, baseMs * 2 ** Math.min(attempt - 1, 31)));
        },
      ),
    );
  });

  test("spreads evenly: no two of a fleet that fails together are likely to meet", () => {
    const rolls = seededRandom(7);
    const pauses = Array.from({ length: 1_000 }, () => brokerBackoffMs(20, rolls()));
    const buckets = Array.from(
      { length: 10 },
      (_, i) => pauses.filter((ms) => Math.floor(ms / 1_000) === i).length,
    );
    expect(Math.min(...buckets)).toBeGreaterThan(60);
    expect(new Set(pauses).size).toBeGreaterThan(900);
  });
});

describe("verdicts", () => {
  const context = {
    attempt: 2,
    maxAttempts: 5,
    retryDelayMs: { baseMs: 100, maxMs: 1_000 },
    random: () => 0.5,
    leaseLeftMs: 3_000,
  };

  test("follow from how the handler ended", () => {
    const cases: [Outcome, unknown][] = [
      [{ kind: "returned" }, { kind: "ack" }],
      [{ kind: "interrupted" }, { kind: "release" }],
      [
        { kind: "dead", reason: "no" },
        { kind: "dead", error: "no" },
      ],
      [
        { kind: "threw", error: new Error("x") },
        { kind: "retry", delayMs: 100, error: "Error: x" },
      ],
      [
        { kind: "threw", error: new PermanentError("x") },
        { kind: "dead", error: "PermanentError: x" },
      ],
      [
        { kind: "retry", delayMs: 7, reason: "later" },
        { kind: "retry", delayMs: 7, error: "later" },
      ],
      [
        { kind: "retry", delayMs: undefined, reason: undefined },
        { kind: "retry", delayMs: 100, error: "the handler asked for a retry" },
      ],
    ];
    for (const [outcome, verdict] of cases) expect<unknown>(verdictOf(outcome, context)).toEqual(verdict);
  });

  test("a handler that ignored the end of its run, or its timeout, has failed, and its job stays away while its lease would have held", () => {
    for (const [asked, delayMs] of [
      [undefined, 3_000],
      [7, 3_000],
      [5_000, 5_000],
    ] as const) {
      for (const [timeout, error] of [
        [undefined, "ignored its signal when the run ended"],
        [new JobTimeoutError(500), "ran longer than its timeoutMs of 500, and ignored its signal"],
      ] as const) {
        const verdict = verdictOf({ kind: "ignored", delayMs: asked, timeout }, context);
        expect(verdict).toMatchObject({ kind: "retry", delayMs, error: expect.stringContaining(error) });
        expect(
          verdictOf({ kind: "ignored", delayMs: asked, timeout }, { ...context, attempt: 5 }),
        ).toMatchObject({ kind: "dead", error: expect.stringContaining(error) });
      }
    }
  });

  test("on the last attempt a failure is dead, a stop is not", () => {
    const last = { ...context, attempt: 5 };
    expect(verdictOf({ kind: "threw", error: "x" }, last)).toEqual({ kind: "dead", error: "x" });
    expect(verdictOf({ kind: "retry", delayMs: 0, reason: "y" }, last)).toEqual({ kind: "dead", error: "y" });
    expect(verdictOf({ kind: "interrupted" }, last)).toEqual({ kind: "release" });
    expect(verdictOf({ kind: "returned" }, last)).toEqual({ kind: "ack" });
  });

  test("a subclass of PermanentError is permanent", () => {
    class Refused extends PermanentError {}
    expect(verdictOf({ kind: "threw", error: new Refused("x") }, context).kind).toBe("dead");
  });

  test("error texts are cut, well-formed, and never more than 1,000 characters", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 1_500 }),
        fc.integer({ min: 1, max: 3 }),
        (text, times) => {
          const verdict = verdictOf({ kind: "dead", reason: text.repeat(times) }, context);
          const { error } = verdict as { error: string };
          expect(error.length).toBeLessThanOrEqual(1_000);
          expect(error.isWellFormed()).toBe(true);
        },
      ),
    );
  });

  test("a backoff function's delay is made whole, and no more than a number can count", () => {
    for (const [ms, delayMs] of [
      [0, 0],
      [1.9, 1],
      [1e300, Number.MAX_SAFE_INTEGER],
    ] as const) {
      const verdict = verdictOf({ kind: "threw", error: "x" }, { ...context, retryDelayMs: () => ms });
      expect(verdict).toEqual({ kind: "retry", delayMs, error: "x" });
    }
  });

  test("attempts are used up above maxAttempts only", () => {
    expect(attemptsUsedUp({ attempt: 5, suspect: true }, 5)).toBeUndefined();
    expect(attemptsUsedUp({ attempt: 6, suspect: true }, 5)?.kind).toBe("dead");
  });
});

describe("a job whose attempts are used up", () => {
  test("had as many as it was allowed, however often a claim found it so", () => {
    for (const attempt of [4, 5, 9]) {
      expect(attemptsUsedUp({ attempt, suspect: true }, 3)).toEqual({
        kind: "dead",
        error: "The worker vanished while it held attempt 3 of 3; no attempt is left",
        attempts: 3,
      });
    }
  });

  test("that failed more often than it may by now is not said to have vanished", () => {
    expect(attemptsUsedUp({ attempt: 6, suspect: false }, 3)).toEqual({
      kind: "dead",
      error: "It has failed 5 times, and maxAttempts is 3 by now; no attempt is left",
      attempts: 5,
    });
  });
});

describe("triage", () => {
  test("only a suspect on its last attempt runs alone", () => {
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      expect(fateOf(delivery({ attempt }), 3).kind).toBe("run");
      expect(fateOf(delivery({ attempt, suspect: true }), 3).kind).toBe(attempt === 3 ? "runAlone" : "run");
    }
    expect(fateOf(delivery({ attempt: 4, suspect: true }), 3).kind).toBe("settle");
    expect(fateOf(delivery({ broken: "cut short", suspect: true, attempt: 3 }), 3)).toEqual({
      kind: "settle",
      verdict: { kind: "dead", error: "cut short" },
    });
  });
});

describe("the outbox", () => {
  test("hands out what waits, oldest first, a thousand at a time", () => {
    const outbox = new Outbox();
    expect([outbox.empty, outbox.oldestSince]).toEqual([true, undefined]);
    for (let i = 0; i < MAX_SETTLE + 5; i += 1) outbox.add(held(), { kind: "ack" }, i);
    expect(outbox.oldestSince).toBe(0);
    const first = outbox.take();
    expect(first.map((one) => one.since)).toEqual(Array.from({ length: MAX_SETTLE }, (_, i) => i));
    expect([outbox.waiting, outbox.inFlight, outbox.empty]).toEqual([5, MAX_SETTLE, false]);
    expect(outbox.take().length).toBe(5);
    outbox.answered(first);
    expect([outbox.waiting, outbox.inFlight, outbox.empty]).toEqual([0, 5, false]);
  });

  test("what could not be sent waits again, before the others, unless its lease is over", () => {
    const outbox = new Outbox();
    const [kept, gone] = [held("kept"), held("gone")];
    outbox.add(gone, { kind: "ack" }, 1);
    outbox.add(kept, { kind: "ack" }, 2);
    const taken = outbox.take();
    outbox.add(held("new"), { kind: "ack" }, 3);
    gone.lease.lost = true;
    expect(outbox.putBack(taken).map((one) => one.held)).toEqual([gone]);
    expect(outbox.take().map((one) => one.since)).toEqual([2, 3]);
  });

  test("a lease that is over takes its waiting verdicts along, and no others", () => {
    const outbox = new Outbox();
    const [a, b] = [held("a"), held("b")];
    outbox.add(a, { kind: "ack" }, 1);
    outbox.add(b, { kind: "ack" }, 2);
    expect(outbox.dropLease(a.lease).map((one) => one.held)).toEqual([a]);
    expect(outbox.dropLease(a.lease)).toEqual([]);
    expect(outbox.waiting).toBe(1);
  });
});
