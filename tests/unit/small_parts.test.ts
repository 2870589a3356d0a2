import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { SimulatedPlatform, seededRandom } from "../../runtimes/simulated.ts";
import { brokerBackoffMs, fullJitter } from "../../src/backoff.ts";
import type { Delivery } from "../../src/broker.ts";
import { type BudgetLimits, reserveFor, roomFor, type Spending, startRefused } from "../../src/budget.ts";
import { Changes } from "../../src/changes.ts";
import { claimAheadInMs } from "../../src/claim_ahead.ts";
import { byteLength, decodeBody, encodeBody, toBytes, toText } from "../../src/codec.ts";
import { PermanentError } from "../../src/errors.ts";
import { type EddyEvent, Events } from "../../src/events.ts";
import { type HeldDelivery, HeldLease, type LeaseOwner } from "../../src/held.ts";
import { MAX_SETTLE, Outbox } from "../../src/outbox.ts";
import { settledWithin, withDeadline } from "../../src/requests.ts";
import { describeIssues } from "../../src/schemas.ts";
import { fateOf } from "../../src/triage.ts";
import { Turns } from "../../src/turns.ts";
import { attemptsUsedUp, type Outcome, verdictOf } from "../../src/verdict.ts";
import { noStrayRejections } from "../support/world.ts";

noStrayRejections();

const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

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

  test("attempts are used up above maxAttempts only", () => {
    expect(attemptsUsedUp(5, 5)).toBeUndefined();
    expect(attemptsUsedUp(6, 5)?.kind).toBe("dead");
  });
});

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

const owner: LeaseOwner = { leaseMs: 1_000, renews: true, renew: async () => [], lost: () => {} };

function held(leaseId = "l"): HeldDelivery {
  const lease = new HeldLease(leaseId, owner, 1, 0, 1_000, 333);
  return { delivery: delivery({ leaseId }), lease, started: true, over: false };
}

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

describe("codecs", () => {
  test("JSON comes back as it was, for all that has a JSON form", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(decodeBody("json", encodeBody("json", value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test("text comes back as it was, as a string or as its bytes", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        expect(decodeBody("text", encodeBody("text", text))).toBe(text);
        expect(decodeBody("text", toBytes(text))).toBe(text);
        expect(byteLength(text)).toBe(toBytes(text).length);
      }),
    );
    expect(toText(new Uint8Array([0xef, 0xbb, 0xbf, 0x61]))).toBe("\ufeffa");
  });

  test("bytes come back as they were", () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        expect(decodeBody("bytes", encodeBody("bytes", bytes))).toEqual(bytes);
        expect(byteLength(bytes)).toBe(bytes.length);
      }),
    );
  });

  test("errors never quote the body", () => {
    for (const act of [
      () => decodeBody("json", '{"secret": nonsense'),
      () => decodeBody("text", new Uint8Array([0x73, 0xff])),
      () => decodeBody("json", ""),
    ]) {
      expect(act).toThrow(TypeError);
      expect(act).not.toThrow(/secret|nonsense/);
    }
  });
});

describe("where a body does not fit", () => {
  test("only places are named, each once, five at most", () => {
    expect(describeIssues([{ message: "secret" }])).toBe(
      "The body does not fit the queue's schema at: the whole body",
    );
    expect(
      describeIssues([
        { message: "secret", path: ["a", 0, { key: "b" }] },
        { message: "secret", path: ["a", 0, "b"] },
        { message: "secret", path: [Symbol("s")] },
      ]),
    ).toBe("The body does not fit the queue's schema at: a.0.b, Symbol(s)");
    expect(describeIssues(Array.from({ length: 9 }, (_, i) => ({ message: "", path: [i] })))).toEndWith(
      "0, 1, 2, 3, 4 and 4 more",
    );
  });
});

describe("waiting for a condition", () => {
  test("ends when it holds, and when the time is over, and leaves no timer", async () => {
    const platform = new SimulatedPlatform();
    const changes = new Changes();
    let ready = false;
    const waits = [
      changes.until(platform, 1_000, () => ready),
      changes.until(platform, Number.POSITIVE_INFINITY, () => ready),
    ];
    const late = changes.until(platform, 10, () => ready);
    changes.notify();
    await platform.pass(20);
    expect(await late).toBe(false);
    ready = true;
    changes.notify();
    expect(await Promise.all(waits)).toEqual([true, true]);
    expect(platform.timers).toBe(0);
    expect(await changes.until(platform, 0, () => true)).toBe(true);
    expect(await changes.until(platform, 0, () => false)).toBe(false);
  });

  test("looks once more when the time is over", async () => {
    const platform = new SimulatedPlatform();
    let ready = false;
    const waiting = new Changes().until(platform, 10, () => ready);
    ready = true;
    await platform.pass(10);
    expect(await waiting).toBe(true);
  });

  test("one that ends another's wait does not disturb it", async () => {
    const platform = new SimulatedPlatform();
    const changes = new Changes();
    let count = 0;
    const waits = [1, 2, 3].map((n) =>
      changes.until(platform, 100, () => {
        count += 1;
        return count > n;
      }),
    );
    changes.notify();
    changes.notify();
    await platform.pass(200);
    expect(await Promise.all(waits)).toEqual([true, true, true]);
  });
});

describe("bounds on what is waited for", () => {
  test("a deadline rejects, names the verb, and takes late answers in silence", async () => {
    const platform = new SimulatedPlatform();
    let late!: (error: Error) => void;
    const work = new Promise<never>((_, reject) => {
      late = reject;
    });
    const bounded = withDeadline(platform, 50, "odd", "claim", work);
    const said = bounded.catch((error: Error) => error.message);
    await platform.pass(50);
    expect(await said).toBe("The odd broker did not answer claim within 50 ms");
    late(new Error("at last"));
    expect(await withDeadline(platform, 50, "odd", "claim", Promise.resolve(7))).toBe(7);
    await expect(withDeadline(platform, 50, "odd", "claim", Promise.reject("text"))).rejects.toThrow(
      "A string was thrown instead of an Error",
    );
    expect(platform.timers).toBe(0);
  });

  test("settledWithin never rejects, and ends at the time at the latest", async () => {
    const platform = new SimulatedPlatform();
    await settledWithin(platform, 50, Promise.reject(new Error("no")));
    const waiting = settledWithin(platform, 50, new Promise(() => {}));
    await platform.run(waiting);
    expect(platform.now()).toBe(50);
  });
});

describe("events", () => {
  test("reach each listener until it is taken away, and a faulty one touches no other", () => {
    const events = new Events();
    const seen: EddyEvent[] = [];
    expect(events.heard).toBe(false);
    events.on(() => {
      throw new Error("its own");
    });
    const off = events.on((event) => seen.push(event));
    events.emit({ type: "stopped" });
    off();
    off();
    events.emit({ type: "stopped" });
    expect(seen).toEqual([{ type: "stopped" }]);
    expect(events.heard).toBe(true);
  });
});

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
    slots: 2,
    averageMs: undefined,
    roundTripMs: undefined,
    requestsPerJob: undefined,
  };
  const nothingKept = { ms: 0, requests: 0 };

  test("without limits a claim gets all it wants", () => {
    expect(roomFor(16, none, nothingKept, fresh, 1)).toEqual({ jobs: 16, end: undefined });
    expect(startRefused(none, nothingKept, fresh)).toBeUndefined();
  });

  test("of an unknown queue one job a slot is taken", () => {
    expect(roomFor(16, { ...none, maxMs: 1_000 }, nothingKept, fresh, 1).jobs).toBe(2);
    expect(roomFor(16, { ...none, maxRequests: 10 }, nothingKept, { ...fresh, held: 1 }, 1).jobs).toBe(1);
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
});

describe("turns of the event loop", () => {
  test("are left when claims have gone out for 20 ms without one, and asked for once", async () => {
    const platform = new SimulatedPlatform();
    const turns = new Turns(platform);
    let told = 0;
    const tell = () => {
      told += 1;
    };
    expect(turns.mayClaim(tell)).toBe(true);
    turns.claimed();
    platform.spend(19);
    expect(turns.mayClaim(tell)).toBe(true);
    turns.claimed();
    platform.spend(1);
    expect(turns.mayClaim(tell)).toBe(false);
    expect(turns.mayClaim(tell)).toBe(false);
    expect(platform.timers).toBe(1);
    await platform.pass(0);
    expect([told, turns.mayClaim(tell), platform.timers]).toEqual([1, true, 0]);
  });

  test("are counted in claims where the clock stands still", () => {
    const turns = new Turns(new SimulatedPlatform({ clockStopsDuringCpu: true }));
    for (let i = 0; i < 64; i += 1) {
      expect(turns.mayClaim(() => {})).toBe(true);
      turns.claimed();
    }
    expect(turns.mayClaim(() => {})).toBe(false);
  });
});

describe("the simulated platform", () => {
  test("fires timers in the order of their times, then of their setting, and moves the clock there", async () => {
    const platform = new SimulatedPlatform();
    const fired: [string, number][] = [];
    for (const [name, ms] of [
      ["c", 30],
      ["a", 10],
      ["b1", 20],
      ["b2", 20],
    ] as const) {
      platform.setTimer(ms, () => fired.push([name, platform.now()]));
    }
    platform.setTimer(15, () => fired.push(["never", 0]))();
    await platform.pass(25);
    expect(fired).toEqual([
      ["a", 10],
      ["b1", 20],
      ["b2", 20],
    ]);
    expect([platform.now(), platform.timers]).toEqual([25, 1]);
  });

  test("plays the same way for the same seed", () => {
    const ids = (seed: number) => {
      const platform = new SimulatedPlatform({ seed });
      return [platform.randomId(), platform.random(), platform.randomId()];
    };
    expect(ids(5)).toEqual(ids(5));
    expect(ids(5)).not.toEqual(ids(6));
  });

  test("says so when nothing can happen any more, or not in time", async () => {
    const platform = new SimulatedPlatform();
    await expect(platform.run(new Promise(() => {}))).rejects.toThrow("stands still");
    platform.setTimer(1_000, () => {});
    await expect(platform.run(new Promise(() => {}), 500)).rejects.toThrow("went on for 500 ms");
  });

  test("says so when the world goes round in a circle without time passing", async () => {
    for (const wait of [0, 1e-12]) {
      const platform = new SimulatedPlatform();
      platform.spend(1_000_000);
      const again = () => {
        platform.setTimer(wait, again);
      };
      again();
      await expect(platform.pass(10)).rejects.toThrow("goes round in a circle");
    }
  });

  test("also when it never comes to rest, whoever catches the error", async () => {
    const platform = new SimulatedPlatform();
    let caught = 0;
    void (async () => {
      while (caught === 0) {
        await Promise.resolve();
        try {
          platform.setTimer(0, () => {});
        } catch {
          caught += 1;
        }
      }
    })();
    await expect(platform.run(new Promise(() => {}))).rejects.toThrow("goes round in a circle");
    expect(caught).toBe(1);
  });

  test("late timers fire as soon as they can", async () => {
    const platform = new SimulatedPlatform();
    let at = 0;
    platform.setTimer(10, () => {
      at = platform.now();
    });
    platform.spend(50);
    await platform.pass(0);
    expect(at).toBe(50);
  });
});
