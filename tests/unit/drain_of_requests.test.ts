import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type DrainReport, drain } from "../../src/drain.ts";
import { BrokerError, WorkerStoppedError } from "../../src/errors.ts";
import { queue } from "../../src/queue.ts";
import { defineWorker } from "../../src/worker.ts";
import { define, drained } from "../support/draining.ts";
import { heeds } from "../support/handling.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

describe("a drain's budget of requests", () => {
  test("is never exceeded, counted at the broker", async () => {
    for (const maxRequests of [6, 7, 8, 12, 30]) {
      for (const lacks of [[], ["exchange"]] as const) {
        const world = new World({ lacks });
        await world.add(400);
        const report = await drained(world, define(world.takes(1), { prefetch: 8 }), {
          budget: { maxRequests },
        });
        expect(report.stopped).toBe("requests");
        expect(world.broker.requests).toBeLessThanOrEqual(maxRequests);
        expect((await world.sizes()).held).toBe(0);
        expect(report.lost).toBe(0);
        expect(report.acked).toBeGreaterThan(0);
      }
    }
  });

  test("that no job could be done with is refused, with the least that works; that much works, whichever queue has the jobs", async () => {
    for (const queues of [1, 2, 3]) {
      for (const lacks of [[], ["exchange"]] as const) {
        for (const isTaught of [true, false]) {
          const names = Array.from({ length: queues }, (_, index) => `q${index}`);
          const world = new World({ lacks });
          await world.add(1, {}, names.at(-1) as string);
          let fetched = 0;
          world.broker.fault = ({ claim }) => {
            if (claim !== undefined && !isTaught && world.broker.claims.length === 1)
              world.broker.taught += 1;
            return undefined;
          };
          const definition = defineWorker({
            queues: names.map((name) =>
              queue(name).handle(async () => {
                fetched += 1;
              }),
            ),
          });
          const least = 5 * queues + 1;
          await expect(
            drain(definition, {
              broker: world.broker.another(),
              platform: world.platform,
              budget: { maxRequests: least - 1 },
            }),
          ).rejects.toThrow(`maxRequests is ${least - 1}; give ${least} or more`);
          const report = await drained(world, definition, { budget: { maxRequests: least } });
          expect([report.acked, fetched]).toEqual([1, 1]);
        }
      }
    }
  });

  test("counts a claim as two until one was answered, for the engine may have to be taught first", async () => {
    const world = new World();
    await world.add(20);
    const report = await drained(world, define(world.takes(1), { concurrency: 9, prefetch: 9 }), {
      budget: { maxRequests: 10 },
    });
    expect(report.acked).toBeGreaterThan(0);
    // Ten, less the opening, two kept back, and two for itself.
    expect(world.broker.claims[0]?.claim?.max).toBe(5);
  });

  test("has room for a first claim that takes two requests, in each queue", async () => {
    for (const concurrency of [1, 4]) {
      const world = new World({ roundTripMs: 5 });
      for (const name of ["a", "b", "c"]) await world.add(20, {}, name);
      const first = new Set<string>();
      world.broker.fault = (asked) => {
        if (asked.claim === undefined || first.has(asked.queue)) return undefined;
        first.add(asked.queue);
        world.platform.setTimer(5, () => {
          world.broker.taught += 1;
        });
        return { delayMs: 10 };
      };
      const handlers = ["a", "b", "c"].map((name) => queue(name).handle(world.takes(1), { concurrency }));
      const report = await drained(world, defineWorker({ queues: handlers }), {
        budget: { maxRequests: 18 },
      });
      expect(report.acked).toBeGreaterThan(0);
      expect(report.lost).toBe(0);
    }
  });

  test("what is kept back settles all that was started, however it trickles in", async () => {
    for (let maxRequests = 6; maxRequests <= 34; maxRequests += 1) {
      for (const concurrency of [2, 3]) {
        for (const lacks of [[], ["exchange"]] as const) {
          const world = new World({ roundTripMs: 1, lacks });
          await world.add(60);
          let nth = 0;
          const handler = async () => {
            nth += 1;
            await world.platform.sleep(1 + (nth % 3));
          };
          const report = await drained(world, define(handler, { concurrency, prefetch: 1 }), {
            budget: { maxRequests },
          });
          expect(report).toMatchObject({ lost: 0, acked: report.jobs });
          expect((await world.sizes()).held).toBe(0);
        }
      }
    }
  });

  test("nor does a handler that never ends keep the others' verdicts back", async () => {
    const world = new World();
    await world.add(40);
    let nth = 0;
    const handler = () => {
      nth += 1;
      return nth === 1 ? new Promise(() => {}) : world.platform.sleep(2);
    };
    const report = await drained(world, define(handler, { concurrency: 2, prefetch: 2 }), {
      budget: { maxRequests: 8, maxMs: 10_000 },
    });
    expect(report).toMatchObject({ acked: report.jobs - 1, retried: 1, abandoned: 1 });
    expect((await world.sizes()).held).toBe(0);
  });

  test("nor when requests fail, and what could not be settled is told lost", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.integer({ min: 6, max: 25 }),
        fc.integer({ min: 0, max: 90 }),
        fc.boolean(),
        async (seed, maxRequests, failures, exchange) => {
          const world = new World({ simulated: { seed }, lacks: exchange ? [] : ["exchange"] });
          await world.add(100);
          world.broker.fault = (asked) => {
            if (asked.verb === "open") return undefined;
            const roll = world.platform.random() * 100;
            return roll < failures ? (roll < failures / 2 ? "lost" : "replyLost") : undefined;
          };
          const ended = await world.platform
            .run(
              drain(define(world.takes(1), { prefetch: 8 }), {
                broker: world.broker,
                platform: world.platform,
                budget: { maxRequests },
              }),
            )
            .catch((error: unknown) => error);
          expect(world.broker.requests).toBeLessThanOrEqual(maxRequests);
          if (ended instanceof Error) expect(ended).toBeInstanceOf(BrokerError);
          else {
            const { jobs, acked, lost, released } = ended as DrainReport;
            expect(acked + lost + released).toBeGreaterThanOrEqual(jobs);
          }
          await world.platform.pass(0);
          expect(world.platform.timers).toBe(0);
        },
      ),
      { numRuns: 60 },
    );
  });

  test("nor by renewals of a job that runs long: it is given back in time", async () => {
    const world = new World();
    await world.add(3);
    const report = await drained(world, define(heeds, { leaseMs: 3_000 }), {
      budget: { maxRequests: 10, maxMs: 3_600_000 },
    });
    expect(report).toMatchObject({ stopped: "requests", acked: 0, lost: 0 });
    expect(report.released).toBeGreaterThan(0);
    expect(world.broker.requests).toBeLessThanOrEqual(10);
    expect((await world.peek("ready")).map((one) => one.attempts)).toEqual([0, 0, 0]);
  });

  test("counts job.fetch, and one beyond it rejects and gives the job back", async () => {
    const world = new World({ simulated: { fetch: async () => new Response("ok") } });
    await world.add(20);
    let fetched = 0;
    const errors: unknown[] = [];
    const report = await drained(
      world,
      define(async (job) => {
        for (let i = 0; i < 3; i += 1) {
          await job.fetch("https://receiver.example/").catch((error: unknown) => {
            errors.push(error);
            throw error;
          });
          fetched += 1;
        }
      }),
      { budget: { maxRequests: 20 } },
    );
    expect(report.stopped).toBe("requests");
    expect(report.requests).toBe(fetched + world.broker.requests);
    expect(report.acked).toBeGreaterThanOrEqual(3);
    expect(report.retried + report.dead).toBe(0);
    for (const error of errors) expect(error).toBeInstanceOf(WorkerStoppedError);
  });

  test("is not left unused for what an earlier run measured", async () => {
    const world = new World({ simulated: { fetch: async () => new Response("ok") } });
    let fetches = 200;
    const definition = define(async (job) => {
      for (let i = 0; i < fetches; i += 1) await job.fetch("https://receiver.example/");
    });
    await world.add(1);
    expect(await drained(world, definition)).toMatchObject({ acked: 1 });
    fetches = 1;
    await world.add(12);
    expect(await drained(world, definition, { budget: { maxRequests: 50 } })).toMatchObject({
      acked: 12,
      stopped: "empty",
    });
  });

  test("a job that fetches more than those before it is stopped at the budget", async () => {
    const world = new World({ simulated: { fetch: async () => new Response("ok") } });
    await world.add(2);
    let refusals = 0;
    let nth = 0;
    const report = await drained(
      world,
      define(async (job) => {
        nth += 1;
        for (let i = 0; i < (nth === 1 ? 1 : 100); i += 1) {
          await job.fetch("https://receiver.example/").catch((error: unknown) => {
            refusals += 1;
            throw error;
          });
        }
      }),
      { budget: { maxRequests: 30 } },
    );
    expect(refusals).toBe(1);
    expect(report).toMatchObject({ acked: 1, released: 1, stopped: "requests" });
  });

  test("an engine that needs no requests leaves all of it to the handlers", async () => {
    const world = new World({ counts: false, simulated: { fetch: async () => new Response("ok") } });
    await world.add(20);
    const report = await drained(
      world,
      define(async (job) => {
        await job.fetch("https://receiver.example/");
      }),
      { budget: { maxRequests: 7 } },
    );
    expect(report).toMatchObject({ acked: 7, requests: 7, stopped: "requests", left: 13 });
  });

  test("by default it is what the platform's invocation allows", async () => {
    const world = new World({ simulated: { limits: { requests: 12 } } });
    await world.add(1_000);
    const report = await drained(
      world,
      define(() => {}, { prefetch: 4 }),
    );
    expect(report.stopped).toBe("requests");
    expect(world.broker.requests).toBeLessThanOrEqual(12);
  });
});
