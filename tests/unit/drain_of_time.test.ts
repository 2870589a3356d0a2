import { describe, expect, test } from "bun:test";
import { drain } from "../../src/drain.ts";
import type { Job } from "../../src/job.ts";
import { queue } from "../../src/queue.ts";
import { defineWorker } from "../../src/worker.ts";
import { define, drained } from "../support/draining.ts";
import { heeds } from "../support/handling.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

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
