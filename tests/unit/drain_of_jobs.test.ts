import { describe, expect, test } from "bun:test";
import { queue } from "../../src/queue.ts";
import { defineWorker } from "../../src/worker.ts";
import { define, drained } from "../support/draining.ts";
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
