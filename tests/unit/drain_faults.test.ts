import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { drain } from "../../src/drain.ts";
import { BrokerError, BrokerRefusedError } from "../../src/errors.ts";
import { define, drained, type Handle } from "../support/draining.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

describe("a drain on a broker that fails", () => {
  test("rejects after a bounded number of tries, with the broker's error", async () => {
    for (const fault of ["lost", "hangs", "throws"] as const) {
      const world = new World();
      world.broker.fault = (asked) => (asked.verb === "open" ? undefined : fault);
      const error = await world.platform
        .run(
          drain(
            define(() => {}),
            { broker: world.broker, platform: world.platform },
          ),
        )
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(BrokerError);
      expect(world.broker.claims.length).toBe(6);
      // A request that was under way when it ended has its deadline still.
      await world.platform.pass(5_000);
      expect(world.platform.timers).toBe(0);
    }
  });

  test("settles what it can before it rejects", async () => {
    const world = new World({ lacks: ["exchange"] });
    await world.add(8);
    world.broker.fault = (asked) => (asked.verb === "claim" && asked.nth > 0 ? "lost" : undefined);
    const error = await world.platform
      .run(
        drain(
          define(() => {}, { prefetch: 4 }),
          { broker: world.broker, platform: world.platform },
        ),
      )
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(BrokerError);
    expect(await world.sizes()).toMatchObject({ ready: 4, held: 0 });
  });

  test("goes on when it recovers", async () => {
    const world = new World();
    await world.add(30);
    world.broker.fault = (asked) =>
      asked.verb === "exchange" && asked.nth % 3 !== 0 ? "replyLost" : undefined;
    expect(
      await drained(
        world,
        define(() => {}, { prefetch: 4 }),
      ),
    ).toMatchObject({ acked: 30, lost: 0 });
  });

  test("does not take a claim whose lease ended meanwhile for an empty queue", async () => {
    const world = new World();
    await world.add(10);
    world.broker.fault = ({ claim, nth }) => {
      if (claim === undefined || nth > 4) return undefined;
      return nth === 0 ? "hangsAfter" : "hangs";
    };
    // Another worker takes its jobs over when the lease has run out, and gives them back.
    world.platform.setTimer(301, async () => {
      await world.engineQueue().claim({ leaseId: "another", max: 4, waitMs: 0 });
      await world.engineQueue().abandon?.(["another"]);
    });
    const options = { prefetch: 4, leaseMs: 300, requestTimeoutMs: 61, settleWithinMs: 100 };
    const report = await drained(
      world,
      define(() => {}, options),
    );
    expect(report).toMatchObject({ acked: 10, stopped: "empty" });
  });

  test("ends though each claim has to be sent twice", async () => {
    const world = new World();
    await world.add(10);
    const seen = new Set<string>();
    world.broker.fault = ({ claim }) => {
      if (claim === undefined || seen.has(claim.leaseId)) return undefined;
      seen.add(claim.leaseId);
      return "replyLost";
    };
    expect(
      await drained(
        world,
        define(() => {}, { prefetch: 4 }),
      ),
    ).toMatchObject({ acked: 10, stopped: "empty" });
  });

  test("rejects at once when it is refused", async () => {
    for (const verb of ["open", "exchange"] as const) {
      const world = new World();
      await world.add(3);
      world.broker.fault = (asked) => (asked.verb === verb ? "refused" : undefined);
      const error = await world.platform
        .run(
          drain(
            define(() => {}),
            { broker: world.broker, platform: world.platform },
          ),
        )
        .catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(BrokerRefusedError);
      expect(world.platform.now()).toBeLessThan(1_000);
    }
  });
});

describe("any drain", () => {
  test("ends, keeps its budget, and loses and repeats nothing", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          seed: fc.integer({ min: 1, max: 1_000_000 }),
          jobs: fc.integer({ min: 0, max: 80 }),
          jobMs: fc.integer({ min: 0, max: 80 }),
          concurrency: fc.integer({ min: 1, max: 5 }),
          prefetch: fc.oneof(fc.constant("auto" as const), fc.integer({ min: 1, max: 20 })),
          roundTripMs: fc.integer({ min: 0, max: 30 }),
          exchange: fc.boolean(),
          maxMs: fc.option(fc.integer({ min: 200, max: 3_000 }), { nil: undefined }),
          maxRequests: fc.option(fc.integer({ min: 6, max: 60 }), { nil: undefined }),
          maxJobs: fc.option(fc.integer({ min: 1, max: 100 }), { nil: undefined }),
        }),
        async ({ seed, jobs, jobMs, concurrency, prefetch, roundTripMs, exchange, ...budget }) => {
          const world = new World({ simulated: { seed }, roundTripMs, lacks: exchange ? [] : ["exchange"] });
          await world.add(jobs);
          const ran: string[] = [];
          const handler: Handle = async (job) => {
            await new Promise<void>((resolve, reject) => {
              world.platform.setTimer(jobMs, resolve);
              job.signal.addEventListener("abort", () => reject(job.signal.reason));
            });
            ran.push(job.id);
          };
          const report = await drained(world, define(handler, { concurrency, prefetch }), { budget });
          expect(new Set(ran).size).toBe(ran.length);
          expect(report.acked).toBe(ran.length);
          if (budget.maxJobs !== undefined) expect(report.jobs).toBeLessThanOrEqual(budget.maxJobs);
          const { ready, held } = await world.sizes();
          expect([ready + report.acked, held]).toEqual([jobs, 0]);
          expect((await world.peek("ready")).every((one) => one.attempts === 0)).toBe(true);
          if (report.stopped === "empty") expect(ready).toBe(0);
        },
      ),
      { numRuns: 150 },
    );
  });
});
