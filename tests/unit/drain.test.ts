import { describe, expect, spyOn, test } from "bun:test";
import { drain } from "../../src/drain.ts";
import type { HandlerOptions } from "../../src/options.ts";
import { queue } from "../../src/queue.ts";
import { defineWorker } from "../../src/worker.ts";
import { define, drained } from "../support/draining.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

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
      abandoned: 0,
      requests: expect.any(Number),
      ms: 500,
      stopped: "empty",
      left: 0,
      leftReady: 0,
      leftDelayed: 0,
      leftHeld: 0,
      nextDueMs: null,
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

test("a budget of time or requests lets many queues run side by side from the first job on", async () => {
  for (const budget of [{}, { maxMs: 60_000 }, { maxRequests: 10_000 }]) {
    const world = new World();
    const names = Array.from({ length: 40 }, (_, index) => `queue${index}`);
    for (const name of names) await world.add(3, {}, name);
    const definition = defineWorker({
      queues: names.map((name) => queue(name).handle(() => world.platform.sleep(100))),
    });
    const report = await drained(world, definition, { budget });
    expect(report).toMatchObject({ stopped: "empty", acked: 120, lost: 0 });
    // Three jobs of each, one after the other, and their round trips.
    expect(report.ms).toBeLessThan(1_000);
  }
});

test("queues that wait for a budget's room look a few times each, not at each job of another", async () => {
  const looks = async (queues: number) => {
    const world = new World();
    const names = Array.from({ length: queues }, (_, index) => `queue${index}`);
    for (const name of names) await world.add(4, {}, name);
    const definition = defineWorker({
      queues: names.map((name) => queue(name).handle(() => world.platform.sleep(3), { concurrency: 2 })),
    });
    const clock = spyOn(world.platform, "now");
    const report = await drained(world, definition, { budget: { maxJobs: queues } });
    expect(report).toMatchObject({ stopped: "jobs", acked: queues, lost: 0, left: 3 * queues });
    return clock.mock.calls.length / queues;
  };
  // The clock is read at each look: so often for each job.
  expect(await looks(160)).toBeLessThan(3 * (await looks(10)));
});

describe("a drain's signal", () => {
  test("that a handler or a listener gives lets nothing start any more, not even beside it", async () => {
    for (const by of ["handler", "listener"]) {
      const world = new World();
      await world.add(12);
      const ending = new AbortController();
      let started = 0;
      let atStop = 0;
      const stop = () => {
        atStop ||= started;
        ending.abort();
      };
      const definition = define(
        () => {
          started += 1;
          if (by === "handler" && started === 2) stop();
        },
        { concurrency: 6, prefetch: 12 },
      );
      const report = await drained(world, definition, {
        signal: ending.signal,
        on: (event) => {
          world.on(event);
          if (by === "listener" && event.type === "finished") stop();
        },
      });
      expect(started).toBe(atStop);
      expect(report).toMatchObject({ stopped: "signal", jobs: started, acked: started, lost: 0 });
      expect((await world.peek("ready")).map(({ attempts }) => attempts)).toEqual(
        Array.from({ length: 12 - started }, () => 0),
      );
    }
  });

  test("ends it: what runs gets graceMs, what waits goes back", async () => {
    const world = new World();
    await world.add(50);
    const ending = new AbortController();
    world.platform.setTimer(250, () => ending.abort("enough"));
    const report = await drained(world, define(world.takes(100), { prefetch: 8 }), { signal: ending.signal });
    expect(report).toMatchObject({ stopped: "signal", acked: 3, lost: 0, left: 47 });
    expect(world.told("stopping")).toMatchObject([{ reason: "enough", running: 1, graceMs: 10_000 }]);
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
