import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type DrainReport, drain } from "../../src/drain.ts";
import { BrokerError, WorkerStoppedError } from "../../src/errors.ts";
import type { Job } from "../../src/job.ts";
import { queue } from "../../src/queue.ts";
import { defineWorker } from "../../src/worker.ts";
import { define, drained } from "../support/draining.ts";
import { heeds } from "../support/handling.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

describe("a drain's budget of jobs", () => {
  test("is never exceeded, however it claims", async () => {
    for (const maxJobs of [1, 7, 16, 33]) {
      for (const concurrency of [1, 4]) {
        const world = new World();
        await world.add(50);
        const report = await drained(world, define(world.takes(3), { concurrency, prefetch: 8 }), {
          budget: { maxJobs },
        });
        expect(report).toMatchObject({ jobs: maxJobs, acked: maxJobs, stopped: "jobs", left: 50 - maxJobs });
      }
    }
  });

  test("with fewer jobs there, the queue ends it", async () => {
    const world = new World();
    await world.add(5);
    expect(
      await drained(
        world,
        define(() => {}),
        { budget: { maxJobs: 10 } },
      ),
    ).toMatchObject({
      jobs: 5,
      stopped: "empty",
    });
  });

  test("last chances given back to be run alone are not counted twice", async () => {
    const world = new World();
    await world.add(6);
    for (let i = 0; i < 2; i += 1) {
      await world.engineQueue("work", 100).claim({ leaseId: `gone${i}`, max: 6, waitMs: 0 });
      await world.platform.pass(101);
    }
    const report = await drained(
      world,
      define(() => {}, { maxAttempts: 3, prefetch: 6 }),
      {
        budget: { maxJobs: 6 },
      },
    );
    expect(report).toMatchObject({ jobs: 6, acked: 6 });
  });

  test("one queue at its end does not hold the other up, though it wanted the worker alone", async () => {
    const world = new World();
    await world.add(3, {}, "a");
    for (let i = 0; i < 2; i += 1) {
      await world.engineQueue("a", 100).claim({ leaseId: `gone${i}`, max: 3, waitMs: 0 });
      await world.platform.pass(101);
    }
    await world.add(30, {}, "b");
    const definition = defineWorker({
      queues: [
        queue("a").handle(() => {}, { maxAttempts: 3, prefetch: 4 }),
        queue("b").handle(world.takes(20), { prefetch: 4 }),
      ],
    });
    for (const maxJobs of [2, 4, 5]) {
      const report = await drained(world, definition, { budget: { maxJobs } });
      expect(report.jobs).toBe(maxJobs);
      expect(report.stopped).toBe("jobs");
    }
  });
});

describe("a drain's budget of time", () => {
  test("ends it, what waits goes back uncharged, in order, and what runs is aborted and given back", async () => {
    const world = new World();
    const ids = await world.add(100);
    const report = await drained(
      world,
      define(
        (job) =>
          new Promise<void>((resolve, reject) => {
            world.platform.setTimer(90, resolve);
            job.signal.addEventListener("abort", () => reject(job.signal.reason));
          }),
        { prefetch: 16 },
      ),
      { budget: { maxMs: 1_000 } },
    );
    expect(report.stopped).toBe("time");
    expect(report.acked).toBeGreaterThanOrEqual(8);
    expect(report.acked + (report.left ?? 0)).toBe(100);
    const left = await world.peek("ready");
    expect(left.map((one) => one.id)).toEqual(ids.slice(report.acked));
    expect(left.every((one) => one.attempts === 0)).toBe(true);
    expect((await world.sizes()).held).toBe(0);
  });

  test("a claim is cut to what the time left can carry", async () => {
    const world = new World();
    await world.add(100);
    const report = await drained(world, define(world.takes(50), { prefetch: 16 }), {
      budget: { maxMs: 2_000 },
    });
    expect(report.released).toBe(0);
    expect(world.broker.claims.at(-1)?.claim?.max).toBeLessThan(16);
    expect(report.acked).toBeGreaterThanOrEqual(30);
  });

  test("what was done by its end is settled within it, on a slow link too", async () => {
    for (const roundTripMs of [5, 27, 60]) {
      for (const lacks of [[], ["exchange"]] as const) {
        const world = new World({ roundTripMs, lacks });
        await world.add(100);
        const report = await drained(world, define(world.takes(11), { prefetch: 4 }), {
          budget: { maxMs: 400 },
        });
        expect(report).toMatchObject({ acked: report.jobs - report.released, lost: 0, stopped: "time" });
        expect((await world.sizes()).held).toBe(0);
        expect(report.acked).toBeGreaterThan(0);
      }
    }
  });

  test("a handler that ignores its signal does not make it longer", async () => {
    const world = new World();
    await world.add(1);
    const report = await drained(
      world,
      define(() => new Promise(() => {})),
      { budget: { maxMs: 5_000 } },
    );
    expect(report).toMatchObject({
      jobs: 1,
      retried: 1,
      abandoned: 1,
      acked: 0,
      released: 0,
      stopped: "time",
    });
    expect(world.told("abandoned").length).toBe(1);
    const [job] = await world.peek("delayed");
    expect(job).toMatchObject({ attempts: 1 });
    expect(world.told("finished")).toMatchObject([{ error: expect.stringContaining("ignored its signal") }]);
  });

  test("many that ignore it are settled together: over a slow link, too, within the reserve", async () => {
    const world = new World({ roundTripMs: 80 });
    await world.add(8);
    const definition = define(() => new Promise(() => {}), { concurrency: 4, prefetch: 1 });
    const report = await drained(world, definition, { budget: { maxMs: 1_000 } });
    expect(report).toMatchObject({ retried: 4, abandoned: 4, lost: 0 });
  });

  test("one that never ends reaches the dead letters after its attempts, run by run", async () => {
    const world = new World();
    await world.add(1);
    const definition = define(() => new Promise(() => {}), { maxAttempts: 3, leaseMs: 10_000 });
    for (const ends of ["retried", "retried", "dead"]) {
      const from = world.platform.now();
      const report = await drained(world, definition, { budget: { maxMs: 5_000 } });
      expect(report).toMatchObject({ jobs: 1, abandoned: 1, [ends]: 1 });
      if (ends === "dead") break;
      // It may still run: another run gets its job no sooner than by the lease's end.
      const [job] = await world.peek("delayed");
      const dueInMs = (job?.dueAt ?? 0) - world.platform.wallNow();
      expect(dueInMs).toBeGreaterThanOrEqual(9_000 - (world.platform.now() - from));
      await world.platform.pass(dueInMs);
    }
    expect((await world.peek("dead"))[0]).toMatchObject({
      attempts: 3,
      error: expect.stringContaining("ignored its signal"),
    });
  });

  test("a job that used up a whole run is tried by the next one, too", async () => {
    const world = new World();
    await world.add(2);
    let slow = true;
    const definition = define((job) => (slow ? heeds(job) : undefined));
    const first = await drained(world, definition, { budget: { maxMs: 5_000 } });
    expect(first).toMatchObject({ jobs: 1, released: 1, stopped: "time" });
    slow = false;
    const second = await drained(world, definition, { budget: { maxMs: 2_000 } });
    expect(second).toMatchObject({ jobs: 2, acked: 2, stopped: "empty" });
  });

  test("is not left unused for what an earlier run measured", async () => {
    for (const concurrency of [1, 4]) {
      const world = new World();
      let ms = 8_000;
      const definition = define(() => world.platform.sleep(ms), { concurrency });
      await world.add(1);
      expect(await drained(world, definition)).toMatchObject({ acked: 1, stopped: "empty" });
      ms = 50;
      await world.add(12);
      expect(await drained(world, definition, { budget: { maxMs: 3_000 } })).toMatchObject({
        acked: 12,
        released: 0,
        stopped: "empty",
      });
    }
  });

  test("nor is a queue passed over for it while another has jobs", async () => {
    const world = new World();
    let ms = 8_000;
    const definition = defineWorker({
      queues: [
        queue("busy").handle(world.takes(50)),
        queue("once-slow").handle(() => world.platform.sleep(ms)),
      ],
    });
    await world.add(1, {}, "once-slow");
    await drained(world, definition);
    ms = 50;
    await world.add(200, {}, "busy");
    await world.add(5, {}, "once-slow");
    await drained(world, definition, { budget: { maxMs: 3_000 } });
    expect(await world.sizes("once-slow")).toMatchObject({ ready: 0, held: 0 });
  });

  test("that has no room for another job as long as this run's were is said to have none, once half of it is over", async () => {
    const world = new World();
    await world.add(10);
    const report = await drained(world, define(world.takes(700)), { budget: { maxMs: 2_000 } });
    expect(report).toMatchObject({ acked: 2, stopped: "time" });
    const { jobMs = 0, leftMs = 0 } = report.noRoomFor ?? {};
    expect(Math.round(jobMs)).toBe(700);
    expect(leftMs).toBeGreaterThan(0);
    expect(leftMs).toBeLessThan(jobMs);
    await world.add(1);
    expect(
      await drained(
        world,
        define(() => {}),
      ),
    ).not.toHaveProperty("noRoomFor");
  });

  test("what a handler said of its job before it ignored the end counts", async () => {
    for (const [say, ends] of [
      [(job: Job<unknown>) => job.deadLetter("no use"), "dead"],
      [(job: Job<unknown>) => job.retry({ delayMs: 3_600_000 }), "retried"],
      [(job: Job<unknown>) => job.retry({ delayMs: 0 }), "retried"],
    ] as const) {
      const world = new World();
      await world.add(1);
      const handler = (job: Job<unknown>) => {
        say(job);
        return new Promise(() => {});
      };
      const report = await drained(world, define(handler), { budget: { maxMs: 5_000 } });
      expect(report).toMatchObject({ abandoned: 1, [ends]: 1 });
      const [job] = await world.peek(ends === "dead" ? "dead" : "delayed");
      if (ends === "dead") expect(job?.error).toBe("no use");
      else expect((job?.dueAt ?? 0) - world.platform.wallNow()).toBeGreaterThan(10_000);
    }
  });

  test("verdicts that the broker never confirms are told lost", async () => {
    const world = new World();
    await world.add(3);
    world.broker.fault = (asked) => (asked.settle.length > 0 ? "hangs" : undefined);
    const report = await drained(world, define(world.takes(1)), { budget: { maxMs: 5_000 } });
    expect(report).toMatchObject({ jobs: 1, acked: 0, lost: 1 });
  });

  test("nor does a broker that stops to answer", async () => {
    for (const maxMs of [2_000, 20_000]) {
      const world = new World();
      await world.add(50);
      let away = false;
      world.broker.fault = () => (away ? "hangs" : undefined);
      const running = drain(define(world.takes(100), { prefetch: 4 }), {
        broker: world.broker,
        platform: world.platform,
        budget: { maxMs },
      }).catch(() => undefined);
      await world.platform.pass(550);
      away = true;
      await world.platform.run(running);
      expect(world.platform.now()).toBeLessThanOrEqual(maxMs);
    }
  });

  test("jobs see the end as their deadline", async () => {
    const world = new World();
    await world.add(1);
    let deadline = 0;
    await drained(
      world,
      define((job) => {
        deadline = job.deadline;
      }),
      { budget: { maxMs: 10_000 } },
    );
    expect(deadline).toBe(1_800_000_000_000 + 9_000);
  });

  test("by default it is what the platform's invocation allows", async () => {
    const world = new World({ simulated: { limits: { wallMs: 3_000 } } });
    await world.add(1_000);
    const report = await drained(world, define(world.takes(10)));
    expect(report.stopped).toBe("time");
    expect(world.platform.now()).toBeLessThanOrEqual(3_000);
  });
});

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
