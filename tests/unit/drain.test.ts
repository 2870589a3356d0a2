import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type DrainDeps, type DrainReport, drain } from "../../src/drain.ts";
import { BrokerError, BrokerRefusedError, WorkerStoppedError } from "../../src/errors.ts";
import type { Job } from "../../src/job.ts";
import type { HandlerOptions, WorkerOptions } from "../../src/options.ts";
import { queue } from "../../src/queue.ts";
import { defineWorker } from "../../src/worker.ts";
import type { FaultyBroker } from "../support/faulty_broker.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

type Handle = (job: Job<unknown>) => unknown;

function define(handler: Handle, options: HandlerOptions = {}, worker: WorkerOptions = {}) {
  return defineWorker({ queues: [queue("work").handle(handler, options)], ...worker });
}

/** Drains and checks what holds of every report. */
async function drained(
  world: World,
  definition: ReturnType<typeof define>,
  deps: Partial<DrainDeps> = {},
  broker: FaultyBroker = world.broker,
): Promise<DrainReport> {
  const before = broker.requests;
  const started = world.told("started").length;
  const from = world.platform.now();
  const report = await world.platform.run(
    drain(definition, { broker, platform: world.platform, on: world.on, ...deps }),
  );
  const fetches = report.requests - (broker.requests - before);
  expect(fetches).toBeGreaterThanOrEqual(0);
  expect(report.jobs).toBe(world.told("started").length - started);
  expect(report.ms).toBeLessThanOrEqual(world.platform.now() - from);
  const { maxRequests = Number.POSITIVE_INFINITY, maxMs = Number.POSITIVE_INFINITY } = deps.budget ?? {};
  expect(report.requests).toBeLessThanOrEqual(maxRequests);
  expect(world.platform.now() - from).toBeLessThanOrEqual(maxMs);
  await world.platform.pass(0);
  return report;
}

describe("a drain", () => {
  test("takes all there is, settles it, reports, and leaves nothing behind", async () => {
    const world = new World();
    await world.add(50);
    const report = await drained(world, define(world.takes(10)));
    expect(report).toEqual({
      jobs: 50,
      acked: 50,
      retried: 0,
      dead: 0,
      released: 0,
      lost: 0,
      requests: expect.any(Number),
      ms: 500,
      stopped: "empty",
      left: 0,
    });
    expect(world.platform.timers).toBe(0);
    expect(world.broker.breakWatches.size).toBe(0);
    expect(world.broker.count("watch")).toBe(0);
    expect(world.broker.isClosed).toBe(false);
  });

  test("of an empty queue costs one claim", async () => {
    const world = new World();
    const report = await drained(
      world,
      define(() => {}),
    );
    expect(report).toMatchObject({ jobs: 0, stopped: "empty", left: 0, ms: 0 });
    expect(world.broker.claims.length).toBe(1);
  });

  test("counts each verdict, and what is left", async () => {
    const world = new World();
    await world.add(4);
    await world.add(1, { delayMs: 60_000 });
    let nth = 0;
    const report = await drained(
      world,
      define(
        (job) => {
          nth += 1;
          if (nth === 1) job.retry({ delayMs: 10_000 });
          if (nth === 2) job.deadLetter("no");
        },
        { prefetch: 4 },
      ),
    );
    expect(report).toMatchObject({ jobs: 4, acked: 2, retried: 1, dead: 1, released: 0, left: 2 });
    expect(report.stopped).toBe("empty");
  });

  test("where the engine cannot tell, what is left is null", async () => {
    const world = new World({ lacks: ["sizes"] });
    await world.add(3);
    expect(
      (
        await drained(
          world,
          define(() => {}),
        )
      ).left,
    ).toBeNull();
  });

  test("that cannot learn what is left has not failed", async () => {
    for (const fault of ["lost", "hangs", "throws"] as const) {
      const world = new World();
      await world.add(3);
      world.broker.fault = (asked) => (asked.verb === "sizes" ? fault : undefined);
      expect(
        await drained(
          world,
          define(() => {}),
        ),
      ).toMatchObject({ acked: 3, left: null });
    }
  });

  test("works without exchange, without abandon, and on an engine that waits", async () => {
    for (const options of [{ lacks: ["exchange"] }, { lacks: ["abandon"] }, { waits: true }] as const) {
      const world = new World(options);
      await world.add(40);
      const report = await drained(world, define(world.takes(5), { concurrency: 3 }));
      expect(report).toMatchObject({ acked: 40, stopped: "empty", left: 0 });
      expect(world.broker.claims.every((asked) => asked.claim?.waitMs === 0)).toBe(true);
    }
  });

  test("never claims ahead", async () => {
    const world = new World({ roundTripMs: 20 });
    await world.add(100);
    let ahead = 0;
    world.broker.fault = (asked) => {
      const received = world.told("claimed").reduce((sum, one) => sum + one.got, 0);
      if (asked.claim !== undefined && received > world.told("finished").length) ahead += 1;
      return undefined;
    };
    await drained(world, define(world.takes(5)));
    expect(ahead).toBe(0);
  });
});

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
    expect(report).toMatchObject({ jobs: 1, acked: 0, released: 0, stopped: "time" });
    expect(world.told("abandoned").length).toBe(1);
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
    for (const maxRequests of [1, 2, 3, 4, 5, 8, 12, 30]) {
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
        if (maxRequests >= 5) expect(report.acked).toBeGreaterThan(0);
      }
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
    expect(report.acked).toBe(report.jobs - 1);
    expect((await world.sizes()).held).toBe(1);
  });

  test("nor when requests fail, and what could not be settled is told lost", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 1_000_000 }),
        fc.integer({ min: 4, max: 25 }),
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
    const report = await drained(
      world,
      define(
        (job) =>
          new Promise((_, reject) => job.signal.addEventListener("abort", () => reject(job.signal.reason))),
        { leaseMs: 3_000 },
      ),
      { budget: { maxRequests: 10, maxMs: 3_600_000 } },
    );
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

describe("a drain's signal", () => {
  test("ends it: what runs gets graceMs, what waits goes back", async () => {
    const world = new World();
    await world.add(50);
    const ending = new AbortController();
    world.platform.setTimer(250, () => ending.abort());
    const report = await drained(world, define(world.takes(100), { prefetch: 8 }), { signal: ending.signal });
    expect(report).toMatchObject({ stopped: "signal", acked: 3, lost: 0, left: 47 });
    expect((await world.sizes()).held).toBe(0);
  });

  test("that was aborted before it began takes nothing", async () => {
    const world = new World();
    await world.add(5);
    const report = await drained(
      world,
      define(() => {}),
      { signal: AbortSignal.abort() },
    );
    expect(report).toMatchObject({ stopped: "signal", jobs: 0, left: 5 });
    expect(world.broker.claims).toEqual([]);
  });
});

describe("several drains of one queue at once", () => {
  for (const count of [2, 10]) {
    test(`${count} of them: each job is run once`, async () => {
      const world = new World({ roundTripMs: 8 });
      await world.add(300);
      const ran: string[] = [];
      const reports = await world.platform.run(
        Promise.all(
          Array.from({ length: count }, () =>
            drain(define(world.takes(7, ran), { concurrency: 2 }), {
              broker: world.broker.another(),
              platform: world.platform,
            }),
          ),
        ),
      );
      expect(ran.length).toBe(300);
      expect(new Set(ran).size).toBe(300);
      expect(reports.reduce((sum, one) => sum + one.acked, 0)).toBe(300);
      expect(reports.every((one) => one.stopped === "empty")).toBe(true);
    });
  }
});

describe("a drain of several queues", () => {
  const two = (world: World, options: HandlerOptions = {}) =>
    defineWorker({
      queues: [queue("a").handle(world.takes(5), options), queue("b").handle(world.takes(5), options)],
    });

  test("drains them all, or those that are named", async () => {
    const world = new World();
    await world.add(10, {}, "a");
    await world.add(20, {}, "b");
    expect(await drained(world, two(world), { queues: ["b"] })).toMatchObject({ jobs: 20, left: 0 });
    expect(await world.sizes("a")).toMatchObject({ ready: 10 });
    expect(await drained(world, two(world), { queues: ["a", "a"] })).toMatchObject({ jobs: 10 });
    expect(await drained(world, two(world))).toMatchObject({ jobs: 0, stopped: "empty", left: 0 });
  });

  test("shares the budget", async () => {
    for (const budget of [{ maxJobs: 13 }, { maxRequests: 24 }, { maxMs: 120 }]) {
      const world = new World();
      await world.add(100, {}, "a");
      await world.add(100, {}, "b");
      const report = await drained(world, two(world), { budget });
      expect(report.stopped).not.toBe("empty");
      if (budget.maxJobs !== undefined) expect(report.jobs).toBe(13);
      expect((await world.sizes("a")).held + (await world.sizes("b")).held).toBe(0);
    }
  });

  test("an unknown name is refused, and the known ones are named", async () => {
    const world = new World();
    await expect(
      drain(two(world), { broker: world.broker, platform: world.platform, queues: ["c"] }),
    ).rejects.toThrow("Cannot drain queue c: it is unknown to this worker; it knows a, b");
  });
});

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

describe("a budget that cannot be used", () => {
  test("is refused with the field and the mend", async () => {
    const world = new World();
    for (const field of ["maxMs", "maxRequests", "maxJobs"]) {
      for (const [value, is] of [
        [0, "0"],
        [-1, "-1"],
        [1.5, "1.5"],
        [Number.NaN, "NaN"],
        ["5", "a string"],
        [null, "a object"],
      ] as const) {
        await expect(
          drain(
            define(() => {}),
            {
              broker: world.broker,
              platform: world.platform,
              budget: { [field]: value as number },
            },
          ),
        ).rejects.toThrow(`Cannot drain: ${field} is ${is}; give a whole number from 1 on`);
      }
    }
    expect(world.broker.requests).toBe(0);
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
          maxRequests: fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
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
