import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { BrokerLimits } from "../../src/broker.ts";
import { assertBrokerCan, type HandlerOptions, resolveOptions } from "../../src/options.ts";
import { queue } from "../../src/queue.ts";
import { defineWorker } from "../../src/worker.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

const work = queue("work");

function resolve(options: unknown) {
  return resolveOptions(work.handle(() => {}, options as HandlerOptions));
}

/** Fails unless it throws an error of this kind: "Cannot consume queue work: FIELD is IS; MEND". */
function expectRefusal(
  act: () => unknown,
  field: string,
  is: string,
  mend: string,
  kind: typeof RangeError | typeof TypeError = RangeError,
): void {
  let error: unknown;
  try {
    act();
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(kind);
  const { message } = error as Error;
  expect(message).toStartWith(`Cannot consume queue work: ${field} is ${is}; `);
  expect(message.slice(message.indexOf("; "))).toContain(mend);
}

describe("the defaults", () => {
  test("of a queue", () => {
    expect(resolve({})).toEqual({
      concurrency: 1,
      prefetch: "auto",
      maxAttempts: 5,
      retryDelayMs: { baseMs: 1_000, maxMs: 600_000 },
      timeoutMs: undefined,
      renew: true,
      settleWithinMs: 250,
      pollMinMs: 50,
      pollMaxMs: 5_000,
      safetyPollMs: 40_000,
      claimAhead: true,
      batchSize: 1,
      settings: { leaseMs: 30_000, requestTimeoutMs: 5_000, dedupeWindowMs: 600_000 },
    });
  });

  test("follow from each other", () => {
    expect(resolve({ maxAttempts: 1 })).toMatchObject({ prefetch: 1, claimAhead: false });
    expect(resolve({ renew: false })).toMatchObject({ prefetch: 1, claimAhead: false });
    expect(resolve({ leaseMs: 1_000 }).settings.requestTimeoutMs).toBe(200);
    expect(resolve({ pollMs: { min: 9_000 } })).toMatchObject({ pollMinMs: 9_000, pollMaxMs: 9_000 });
    expect(resolve({ backoff: { baseMs: 700_000 } }).retryDelayMs).toEqual({
      baseMs: 700_000,
      maxMs: 700_000,
    });
    expect(resolveOptions(work.handleBatch(() => {}))).toMatchObject({ batchSize: 16, prefetch: 16 });
    expect(resolveOptions(work.handleBatch(() => {}, { batchSize: 4, prefetch: "auto" }))).toMatchObject({
      batchSize: 4,
      prefetch: "auto",
    });
  });

  test("do not take the place of what was given, 0 included", () => {
    expect(resolve({ settleWithinMs: 0, backoff: { baseMs: 0, maxMs: 0 }, claimAhead: false })).toMatchObject(
      {
        settleWithinMs: 0,
        retryDelayMs: { baseMs: 0, maxMs: 0 },
        claimAhead: false,
      },
    );
  });

  test("every lease has a request timeout that fits", () => {
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 2_147_483_647 }), (leaseMs) => {
        // A short lease needs its verdicts sooner.
        const { settings } = resolve({ leaseMs, settleWithinMs: 50 });
        expect(settings.requestTimeoutMs).toBeGreaterThanOrEqual(10);
        expect(settings.requestTimeoutMs).toBeLessThanOrEqual(5_000);
      }),
    );
  });
});

describe("an option by itself", () => {
  const numbers: [string, (value: unknown) => unknown, number][] = [
    ["concurrency", (value) => ({ concurrency: value }), 1],
    ["prefetch", (value) => ({ prefetch: value }), 1],
    ["maxAttempts", (value) => ({ maxAttempts: value }), 1],
    ["timeoutMs", (value) => ({ timeoutMs: value }), 1],
    ["leaseMs", (value) => ({ leaseMs: value }), 100],
    ["requestTimeoutMs", (value) => ({ requestTimeoutMs: value }), 1],
    ["settleWithinMs", (value) => ({ settleWithinMs: value }), 0],
    ["safetyPollMs", (value) => ({ safetyPollMs: value }), 1],
    ["pollMs.min", (value) => ({ pollMs: { min: value } }), 1],
    ["pollMs.max", (value) => ({ pollMs: { max: value } }), 1],
    ["backoff.baseMs", (value) => ({ backoff: { baseMs: value } }), 0],
    ["backoff.maxMs", (value) => ({ backoff: { maxMs: value } }), 0],
  ];
  for (const [field, options, least] of numbers) {
    test(`${field}: only a whole number from ${least} on`, () => {
      for (const value of [least - 1, -5, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
        expectRefusal(
          () => resolve(options(value)),
          field,
          String(value),
          `give a whole number from ${least} `,
        );
      }
      for (const [value, kind] of [
        ["5", "a string"],
        [true, "a boolean"],
        [{}, "a object"],
        [5n, "a bigint"],
      ] as const) {
        expectRefusal(() => resolve(options(value)), field, kind, "give a whole number");
      }
    });
  }

  test("renew and claimAhead: only true or false", () => {
    for (const field of ["renew", "claimAhead"]) {
      for (const value of ["no", 0, {}]) {
        expectRefusal(() => resolve({ [field]: value }), field, `a ${typeof value}`, "give true or false");
      }
    }
  });

  test("groups of options: only objects with known fields", () => {
    const cases: [unknown, string, string, string][] = [
      [{ pollMs: 50 }, "pollMs", "a number", "give an object"],
      [{ backoff: 50 }, "backoff", "a number", "give an object"],
      [{ pollMs: { most: 5 } }, "pollMs.most", "no option", "use some of min, max"],
      [{ backoff: { base: 5 } }, "backoff.base", "no option", "use some of baseMs, maxMs"],
      [5, "options", "a number", "give an object"],
      [null, "options", "null", "give an object"],
    ];
    for (const [options, field, is, mend] of cases) {
      expectRefusal(() => resolve(options), field, is, mend, TypeError);
    }
  });

  test("a misspelt one is no option, and the known ones are named", () => {
    const misspelt = (options: unknown, field: string, known: string) =>
      expectRefusal(() => resolve(options), field, "no option", known, TypeError);
    misspelt({ concurency: 4 }, "concurency", "concurrency, prefetch");
    misspelt({ leaseMS: 4 }, "leaseMS", "leaseMs");
  });
});

describe("options against each other", () => {
  test("a batch in hand needs renewal", () => {
    for (const prefetch of [2, 16, "auto"]) {
      const shown = prefetch === "auto" ? '"auto"' : String(prefetch);
      expectRefusal(
        () => resolve({ prefetch, renew: false }),
        "prefetch",
        shown,
        "set renew to true or prefetch to 1",
      );
    }
    expect(resolve({ prefetch: 1, renew: false }).prefetch).toBe(1);
  });

  test("a batch in hand needs a second attempt", () => {
    for (const prefetch of [2, "auto"]) {
      const shown = prefetch === "auto" ? '"auto"' : String(prefetch);
      expectRefusal(
        () => resolve({ prefetch, maxAttempts: 1 }),
        "prefetch",
        shown,
        "set prefetch to 1 or maxAttempts to 2 or more",
      );
    }
  });

  test("a batch handler needs batches", () => {
    const handler = (options: HandlerOptions) => () => resolveOptions(work.handleBatch(() => {}, options));
    expectRefusal(handler({ renew: false }), "batchSize", "16", "set batchSize to 1");
    expectRefusal(handler({ maxAttempts: 1 }), "batchSize", "16", "set batchSize to 1");
  });

  test("a renewal must be able to fail once and still land", () => {
    expectRefusal(
      () => resolve({ leaseMs: 10_000, requestTimeoutMs: 3_100 }),
      "requestTimeoutMs",
      "3100",
      "lower requestTimeoutMs below 3083 or raise leaseMs",
    );
    expect(resolve({ leaseMs: 10_000, requestTimeoutMs: 3_082 }).renew).toBe(true);
    expect(resolve({ leaseMs: 10_000, requestTimeoutMs: 9_000, renew: false }).renew).toBe(false);
  });

  test("a request timeout that is accepted leaves room for two, and the mend that is named works", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 600, max: 600_000 }),
        fc.integer({ min: 1, max: 600_000 }),
        (leaseMs, requestTimeoutMs) => {
          try {
            resolve({ leaseMs, requestTimeoutMs });
            expect(leaseMs / 3 + 2 * requestTimeoutMs).toBeLessThan(leaseMs);
          } catch (error) {
            const mend = /lower requestTimeoutMs below (\d+)/.exec(String(error))?.[1];
            expect(mend).toBeDefined();
            expect(() => resolve({ leaseMs, requestTimeoutMs: Number(mend) - 1 })).not.toThrow();
          }
        },
      ),
    );
  });

  test("without renewal a job must be done within its lease", () => {
    expectRefusal(
      () => resolve({ renew: false, leaseMs: 10_000, timeoutMs: 9_000 }),
      "timeoutMs",
      "9000",
      "raise leaseMs, lower timeoutMs or set renew to true",
    );
    expect(resolve({ renew: false, leaseMs: 10_000, timeoutMs: 7_000 }).timeoutMs).toBe(7_000);
    expect(resolve({ leaseMs: 10_000, timeoutMs: 60_000 }).timeoutMs).toBe(60_000);
  });

  test("the most is no less than the least", () => {
    expectRefusal(
      () => resolve({ pollMs: { min: 100, max: 50 } }),
      "pollMs.max",
      "50",
      "raise it to pollMs.min (100)",
    );
    expectRefusal(
      () => resolve({ backoff: { baseMs: 100, maxMs: 50 } }),
      "backoff.maxMs",
      "50",
      "raise it to backoff.baseMs (100)",
    );
  });

  test("verdicts leave within half of the lease", () => {
    expectRefusal(
      () => resolve({ leaseMs: 1_000, settleWithinMs: 501 }),
      "settleWithinMs",
      "501",
      "half of the lease of 1000 ms",
    );
  });
});

describe("options against the broker", () => {
  const limits: BrokerLimits = {
    maxBatch: 100,
    maxEnqueue: 100,
    maxInFlight: 50,
    maxBodyBytes: 1_000,
    leaseMs: 30_000,
    renewable: true,
    exclusive: false,
  };
  const check =
    (options: unknown, its: Partial<BrokerLimits> = {}, batchSize = 1): (() => void) =>
    () => {
      const handler =
        batchSize === 1
          ? work.handle(() => {}, options as HandlerOptions)
          : work.handleBatch(() => {}, { ...(options as HandlerOptions), batchSize });
      assertBrokerCan("work", resolveOptions(handler), { ...limits, ...its }, "odd");
    };

  test("what it can do is not refused", () => {
    for (const options of [{}, { prefetch: 50 }, { concurrency: 50 }, { prefetch: 1, renew: false }]) {
      expect(check(options)).not.toThrow();
    }
    expect(check({ prefetch: 1, renew: false }, { renewable: false })).not.toThrow();
    expect(check({ concurrency: 1 }, { exclusive: true })).not.toThrow();
  });

  test("without renewable leases: one job a claim", () => {
    expectRefusal(
      check({}, { renewable: false }),
      "prefetch",
      '"auto"',
      "the odd broker renews no leases: set prefetch to 1",
    );
    expectRefusal(check({ prefetch: 4 }, { renewable: false }), "prefetch", "4", "set prefetch to 1");
    expectRefusal(check({ prefetch: 1 }, { renewable: false }), "renew", "true", "set renew to false");
  });

  test("an exclusive queue: one slot", () => {
    expectRefusal(check({ concurrency: 2 }, { exclusive: true }), "concurrency", "2", "set concurrency to 1");
  });

  test("a batch above what it hands out", () => {
    expectRefusal(
      check({ prefetch: 51 }),
      "prefetch",
      "51",
      "the odd broker hands out 50 at most: lower prefetch",
    );
    expectRefusal(
      check({ prefetch: 51 }, { maxInFlight: 1_000, maxBatch: 50 }),
      "prefetch",
      "51",
      "hands out 50 at most",
    );
    expectRefusal(check({ prefetch: 20 }, {}, 51), "batchSize", "51", "lower batchSize");
    expectRefusal(
      check({ concurrency: 51 }),
      "concurrency",
      "51",
      "lets 50 be held at most: lower concurrency",
    );
  });

  test("a lease of its own that is too short for what is to happen within it", () => {
    expectRefusal(check({}, { leaseMs: 12_000 }), "requestTimeoutMs", "5000", "the lease of 12000 ms");
    expectRefusal(
      check({ renew: false, timeoutMs: 20_000 }, { leaseMs: 12_000 }),
      "timeoutMs",
      "20000",
      "its lease of 12000 ms",
    );
    expectRefusal(
      check({ settleWithinMs: 8_000, requestTimeoutMs: 100 }, { leaseMs: 12_000 }),
      "settleWithinMs",
      "8000",
      "half of the lease of 12000 ms",
    );
  });

  test("a worker is refused at its start, before it claims", async () => {
    const world = new World({ limits: { renewable: false } });
    await world.add(1);
    await expect(world.start(() => {})).rejects.toThrow(
      'Cannot consume queue work: prefetch is "auto"; the faulty broker renews no leases: set prefetch to 1',
    );
    expect(world.broker.claims).toEqual([]);
  });
});

describe("the caller's own objects", () => {
  test("are never changed, and changing them later changes nothing", () => {
    const options = Object.freeze({
      prefetch: 4,
      pollMs: Object.freeze({ min: 10 }),
      backoff: Object.freeze({ baseMs: 5 }),
    });
    const resolved = resolve(options);
    expect(Object.isFrozen(resolved)).toBe(true);
    expect(Object.isFrozen(resolved.settings)).toBe(true);
    expect(resolved.retryDelayMs).toEqual({ baseMs: 5, maxMs: 600_000 });
    const mine = { concurrency: 3 };
    const definition = defineWorker({ queues: [work.handle(() => {}, mine)] });
    mine.concurrency = 900;
    expect(definition.queues[0]?.options.concurrency).toBe(3);
  });
});
