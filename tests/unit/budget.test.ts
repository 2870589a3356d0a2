import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  type BudgetLimits,
  requestTime,
  reserveFor,
  roomFor,
  type Spending,
  startRefused,
} from "../../src/budget.ts";
import { claimAheadInMs } from "../../src/claim_ahead.ts";
import { RoundTrips } from "../../src/round_trips.ts";
import { noStrayRejections } from "../support/world.ts";

noStrayRejections();

describe("claiming ahead", () => {
  const state = {
    asked: 16,
    full: true,
    waiting: 10,
    running: 1,
    slots: 1,
    runningForMs: 5,
    averageMs: 10,
    roundTripMs: 20,
  };

  test("leaves when what is held is less than the round trip and a quarter", () => {
    expect(claimAheadInMs(state)).toBe(11 * 10 - 5 - 25);
    expect(claimAheadInMs({ ...state, waiting: 1 })).toBe(0);
  });

  test("not after a short claim, not for one job, not while something is unknown, not where it is not worth it", () => {
    expect(claimAheadInMs({ ...state, full: false })).toBeUndefined();
    expect(claimAheadInMs({ ...state, asked: 1 })).toBeUndefined();
    expect(claimAheadInMs({ ...state, averageMs: undefined })).toBeUndefined();
    expect(claimAheadInMs({ ...state, roundTripMs: undefined })).toBeUndefined();
    expect(claimAheadInMs({ ...state, roundTripMs: 1 })).toBeUndefined();
  });

  test("answers whole milliseconds from 0 on", () => {
    fc.assert(
      fc.property(
        fc.nat(100),
        fc.nat(16),
        fc.integer({ min: 1, max: 16 }),
        fc.double({ min: 0, max: 1e5, noNaN: true }),
        fc.double({ min: 0, max: 1e4, noNaN: true }),
        fc.double({ min: 0, max: 1e4, noNaN: true }),
        (waiting, running, slots, runningForMs, averageMs, roundTripMs) => {
          const ms = claimAheadInMs({
            ...state,
            waiting,
            running,
            slots,
            runningForMs,
            averageMs,
            roundTripMs,
          });
          if (ms === undefined) return;
          expect(Number.isInteger(ms)).toBe(true);
          expect(ms).toBeGreaterThanOrEqual(0);
        },
      ),
    );
  });
});

describe("budgets", () => {
  const none: BudgetLimits = {
    maxMs: Number.POSITIVE_INFINITY,
    maxRequests: Number.POSITIVE_INFINITY,
    maxJobs: Number.POSITIVE_INFINITY,
  };
  const fresh: Spending = {
    elapsedMs: 0,
    requests: 0,
    jobs: 0,
    held: 0,
    heldOfQueue: 0,
    slots: 2,
    averageMs: undefined,
    roundTripMs: 0,
    requestsPerJob: undefined,
    learned: undefined,
  };
  const nothingKept = { ms: 0, requests: 0 };

  test("without limits a claim gets all it wants", () => {
    expect(roomFor(16, none, nothingKept, fresh, 1)).toEqual({ jobs: 16, end: undefined });
    expect(startRefused(none, nothingKept, fresh)).toBeUndefined();
  });

  test("of an unknown queue one job a slot is taken", () => {
    expect(roomFor(16, { ...none, maxMs: 1_000 }, nothingKept, fresh, 1).jobs).toBe(2);
    const room = (held: number, heldOfQueue: number, limits: Partial<BudgetLimits>) =>
      roomFor(16, { ...none, ...limits }, nothingKept, { ...fresh, held, heldOfQueue }, 1).jobs;
    for (const limits of [{ maxMs: 1_000 }, { maxRequests: 10 }]) {
      expect([room(0, 0, limits), room(1, 1, limits), room(2, 2, limits)]).toEqual([2, 1, 0]);
      // What other queues hold takes none of its slots,
      expect([room(5, 0, limits), room(5, 1, limits)]).toEqual([2, 1]);
    }
    // but may make a request a job at least.
    expect([room(8, 0, { maxRequests: 10 }), room(9, 0, { maxRequests: 10 })]).toEqual([1, 0]);
  });

  test("of a known one as many as fit, less those held", () => {
    const known = { ...fresh, averageMs: 100, roundTripMs: 50, requestsPerJob: 2 };
    expect(roomFor(99, { ...none, maxMs: 1_000 }, nothingKept, known, 1).jobs).toBe(19);
    expect(roomFor(99, { ...none, maxMs: 1_000 }, nothingKept, { ...known, held: 5 }, 1).jobs).toBe(14);
    expect(roomFor(99, { ...none, maxRequests: 21 }, nothingKept, known, 1).jobs).toBe(10);
    expect(roomFor(99, { ...none, maxJobs: 3 }, nothingKept, known, 1).jobs).toBe(3);
  });

  test("when not even one fits, it says what is used up", () => {
    const spent = { ...fresh, elapsedMs: 960, requests: 10, jobs: 5, averageMs: 100, requestsPerJob: 2 };
    expect(roomFor(9, { ...none, maxMs: 1_000 }, nothingKept, spent, 1)).toEqual({ jobs: 0, end: "time" });
    expect(roomFor(9, { ...none, maxRequests: 12 }, nothingKept, spent, 1)).toEqual({
      jobs: 0,
      end: "requests",
    });
    expect(roomFor(9, { ...none, maxJobs: 5 }, nothingKept, spent, 1)).toEqual({ jobs: 0, end: "jobs" });
    expect(startRefused({ ...none, maxMs: 1_000 }, nothingKept, spent)).toBe("time");
    expect(startRefused({ ...none, maxRequests: 11 }, nothingKept, spent)).toBe("requests");
  });

  test("what an earlier run learned sizes claims, but refuses no queue its first job, and none its start", () => {
    const learned = { averageMs: 8_000, requestsPerJob: 90 };
    const limits = { ...none, maxMs: 3_000, maxRequests: 50 };
    const told = { ...fresh, learned };
    expect(roomFor(9, { ...none, maxMs: 20_000 }, nothingKept, told, 1).jobs).toBe(5);
    expect(roomFor(9, { ...none, maxRequests: 200 }, nothingKept, told, 1).jobs).toBe(2);
    // The queue's first, though another queue's are running.
    const beside = { ...told, jobs: 7, held: 2 };
    expect(roomFor(9, limits, nothingKept, beside, 1)).toEqual({ jobs: 1, end: undefined });
    expect(roomFor(9, limits, nothingKept, { ...beside, heldOfQueue: 1 }, 1).jobs).toBe(0);
    expect(roomFor(9, limits, nothingKept, { ...beside, requests: 49 }, 1).end).toBe("requests");
    expect(startRefused(limits, nothingKept, { ...beside, heldOfQueue: 2 })).toBeUndefined();
    expect(startRefused(limits, nothingKept, { ...beside, requests: 50 })).toBe("requests");
    // What the run itself has measured counts alone.
    const measured = { ...told, jobs: 1, averageMs: 50, requestsPerJob: 1 };
    expect(roomFor(99, limits, nothingKept, measured, 1).jobs).toBe(49);
    expect(startRefused(limits, nothingKept, measured)).toBeUndefined();
    expect(startRefused(limits, nothingKept, { ...measured, averageMs: 3_001 })).toBe("time");
  });

  test("no room is ever more than wanted, nor than a limit leaves", () => {
    fc.assert(
      fc.property(
        fc.record({
          wanted: fc.integer({ min: 1, max: 1_000 }),
          maxMs: fc.integer({ min: 1, max: 100_000 }),
          maxRequests: fc.integer({ min: 1, max: 1_000 }),
          maxJobs: fc.integer({ min: 1, max: 1_000 }),
          elapsedMs: fc.integer({ min: 0, max: 120_000 }),
          requests: fc.integer({ min: 0, max: 1_200 }),
          jobs: fc.integer({ min: 0, max: 1_200 }),
          held: fc.integer({ min: 0, max: 50 }),
          averageMs: fc.option(fc.double({ min: 0, max: 1_000, noNaN: true }), { nil: undefined }),
          requestsPerJob: fc.option(fc.double({ min: 0, max: 20, noNaN: true }), { nil: undefined }),
          requestMs: fc.integer({ min: 0, max: 5_000 }),
        }),
        ({ wanted, maxMs, maxRequests, maxJobs, requestMs, ...spending }) => {
          const limits = { maxMs, maxRequests, maxJobs };
          const reserve = reserveFor(limits, 2, true, requestMs);
          expect(reserve.ms).toBeLessThanOrEqual(maxMs / 2);
          expect(reserve.requests).toBe(4);
          const spent = { ...fresh, ...spending };
          const { jobs, end } = roomFor(wanted, limits, reserve, spent, 1);
          expect(jobs).toBeLessThanOrEqual(wanted);
          expect(jobs < 1).toBe(end !== undefined);
          if (jobs < 1) return;
          expect(spent.jobs + jobs).toBeLessThanOrEqual(maxJobs);
          expect(spent.elapsedMs).toBeLessThanOrEqual(maxMs - reserve.ms);
          expect(spent.requests + 1 + reserve.requests).toBeLessThanOrEqual(maxRequests);
          const each = spent.requestsPerJob ?? 1;
          expect(spent.requests + 1 + reserve.requests + each * (spent.held + jobs)).toBeLessThanOrEqual(
            maxRequests + 1e-6 + (spent.requestsPerJob === undefined ? spent.held : 0),
          );
        },
      ),
      { numRuns: 500 },
    );
  });

  test("what is kept back grows with the whole and with the link, up to a bound", () => {
    expect(reserveFor({ ...none, maxMs: 10_000 }, 1, true, 0)).toEqual({ ms: 1_000, requests: 2 });
    expect(reserveFor({ ...none, maxMs: 100_000 }, 3, true, 0)).toEqual({ ms: 2_000, requests: 6 });
    expect(reserveFor({ ...none, maxMs: 1_000 }, 1, true, 100).ms).toBe(300);
    expect(reserveFor({ ...none, maxMs: 1_000 }, 1, true, 9_000).ms).toBe(500);
    expect(reserveFor(none, 1, false, 100)).toEqual({ ms: 0, requests: 0 });
  });

  test("a request is planned with what the last ones took, before the first with what opening did", () => {
    expect(requestTime(undefined, 80, true)).toBe(80);
    expect(requestTime(undefined, 80, false)).toBe(20);
    expect(requestTime(30, 80, true)).toBe(30);
    expect(requestTime(130, 80, false)).toBe(130);
    expect(requestTime(0, 80, true)).toBe(5);
    expect(requestTime(undefined, 0, true)).toBe(5);
  });

  test("no job is started when nothing of the time to work is left, however short it would be", () => {
    const spent = { ...fresh, elapsedMs: 900 };
    expect(startRefused({ ...none, maxMs: 1_000 }, { ms: 100, requests: 0 }, spent)).toBe("time");
    expect(startRefused({ ...none, maxMs: 1_000 }, { ms: 99, requests: 0 }, spent)).toBeUndefined();
  });
});

describe("round trips", () => {
  test("the slowest of the last eight counts, and a hiccup is forgotten after them", () => {
    const trips = new RoundTrips();
    expect(trips.slowestMs).toBeUndefined();
    trips.took(500);
    for (let nth = 1; nth < 8; nth += 1) {
      trips.took(10 + nth);
      expect(trips.slowestMs).toBe(500);
    }
    trips.took(3);
    expect(trips.slowestMs).toBe(17);
    expect(trips.averageMs).toBeGreaterThan(17);
  });
});
