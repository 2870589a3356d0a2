import { describe, expect, test } from "bun:test";
import { readable } from "../../runtimes/cli/commands/drain.ts";
import type { DrainReport } from "../../src/drain.ts";
import type { Job } from "../../src/job.ts";
import { queue } from "../../src/queue.ts";
import { defineWorker } from "../../src/worker.ts";
import { define, drained } from "../support/draining.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

const NOTHING_LEFT = { left: 0, leftReady: 0, leftDelayed: 0, leftHeld: 0 };

async function pause(world: World, name: string): Promise<void> {
  await world.engineQueue(name).pause?.();
}

describe("a drain's report", () => {
  test("tells what is left by its state, and when the next job is due", async () => {
    for (const lacks of [[], ["exchange"]] as const) {
      const world = new World({ lacks });
      await world.add(1);
      await world.engineQueue().claim({ leaseId: "other", max: 1, waitMs: 0 });
      await world.add(3);
      await world.add(2, { delayMs: 7_000 });
      const report = await drained(world, define(world.takes(1_000)));
      expect(report).toMatchObject({ acked: 3, stopped: "empty" });
      expect(report).toMatchObject({ left: 3, leftReady: 0, leftDelayed: 2, leftHeld: 1, nextDueMs: 4_000 });
    }
  });

  test("knows of its own retries", async () => {
    for (const lacks of [[], ["exchange"]] as const) {
      const world = new World({ lacks });
      await world.add(1);
      const report = await drained(
        world,
        define((job) => job.retry({ delayMs: 2_000 })),
      );
      expect(report).toMatchObject({ retried: 1, left: 1, leftDelayed: 1, nextDueMs: 2_000 });
    }
  });

  test("knows of those that its end brought", async () => {
    const world = new World();
    await world.add(1);
    const report = await drained(
      world,
      define(() => new Promise(() => {}), { backoff: () => 100_000 }),
      { budget: { maxMs: 1_000 } },
    );
    expect(report).toMatchObject({ retried: 1, leftDelayed: 1, stopped: "time" });
    expect(report.nextDueMs).toBeGreaterThan(99_000);
  });

  test("tells of no lease of its own that it has settled since, but of what is due before", async () => {
    for (const lacks of [[], ["exchange"]] as const) {
      for (const [delayed, nextDueMs] of [
        [0, null],
        [1, 6_100],
      ] as const) {
        const world = new World({ lacks });
        await world.add(1);
        await world.add(delayed, { delayMs: 7_000 });
        // A slot is free beside it, so the queue is looked at, which tells of its lease.
        const report = await drained(
          world,
          define((job) => new Promise((_, reject) => job.signal.addEventListener("abort", reject)), {
            concurrency: 2,
          }),
          { budget: { maxMs: 1_000 } },
        );
        expect(report).toMatchObject({ released: 1, leftReady: 1, leftDelayed: delayed, stopped: "time" });
        if (nextDueMs === null) expect(report.nextDueMs).toBeNull();
        else expect(report.nextDueMs).toBe(nextDueMs);
      }
    }
  });

  test("nor of another worker's that is over, and its job gone", async () => {
    for (const leaseMs of [3_000, 60_000]) {
      for (const isAlive of [true, false]) {
        const world = new World();
        const engine = world.engineQueue("work", leaseMs);
        await world.add(1);
        const { deliveries } = await engine.claim({ leaseId: "other", max: 1, waitMs: 0 });
        await world.add(1);
        if (isAlive) {
          world.platform.setTimer(500, () => {
            void engine.settle(deliveries.map((delivery) => ({ delivery, verdict: { kind: "ack" } })));
          });
        }
        const untilAborted = (job: Job<unknown>) =>
          new Promise<void>((resolve) => {
            job.signal.addEventListener("abort", () => {
              job.deadLetter("it took too long");
              resolve();
            });
          });
        const report = await drained(world, define(untilAborted, { concurrency: 2 }), {
          budget: { maxMs: 5_000 },
        });
        expect(report).toMatchObject({ dead: 1, stopped: "time", leftReady: 0, leftHeld: isAlive ? 0 : 1 });
        // Where it came to be claimable it is due by now. Where its end came after that of the run's own lease it is not known.
        const left = leaseMs < 30_000 ? 0 : null;
        expect(report.nextDueMs).toBe(isAlive ? null : left);
      }
    }
  });

  test("tells when a job comes back whose verdict the broker never confirmed", async () => {
    const world = new World();
    await world.add(1);
    world.broker.fault = ({ settle }) => (settle.length > 0 ? "hangs" : undefined);
    const report = await drained(world, define(world.takes(1)), { budget: { maxMs: 5_000 } });
    expect(report).toMatchObject({ lost: 1, nextDueMs: 25_000 });
  });

  test("says in a sentence that time was left, but not for one more job", async () => {
    const world = new World();
    await world.add(10);
    const early = await drained(world, define(world.takes(700)), { budget: { maxMs: 2_000 } });
    const leftMs = Math.floor(early.noRoomFor?.leftMs ?? 0);
    expect(readable(early)).toContain(
      `; ended because a job has been taking about 700 ms, more than the ${leftMs} ms left carry; left: 8 (`,
    );
    const late = await drained(world, define(world.takes(5_000)), { budget: { maxMs: 2_000 } });
    expect(readable(late)).toContain("; ended because its time is used up; left: 8 (");
  });

  test("says in a sentence what became of each delivery, so that it adds up", () => {
    const none = { jobs: 0, acked: 0, retried: 0, dead: 0, released: 0, lost: 0, abandoned: 0 };
    const end = { requests: 1, ms: 7, stopped: "empty", nextDueMs: null } as const;
    const left = { left: 0, leftReady: 0, leftDelayed: 0, leftHeld: 0 };
    const said = (counts: Partial<DrainReport>) => readable({ ...none, ...end, ...left, ...counts });
    const rest = "in 7 ms with 1 request; ended because no job was ready any more; left: 0";
    expect(said({})).toBe(`Drained 0 deliveries ${rest}`);
    expect(said({ jobs: 1, acked: 1 })).toBe(`Drained 1 delivery (1 acked) ${rest}`);
    expect(said({ jobs: 3, retried: 1, dead: 3 })).toBe(
      `Drained 4 deliveries (1 retried, 3 dead; handlers were called with 3) ${rest}`,
    );
    expect(said({ jobs: 2, acked: 1, retried: 1, abandoned: 1 })).toBe(
      `Drained 2 deliveries (1 acked, 1 retried; 1 left behind in a handler) ${rest}`,
    );
    const unknown = { left: null, leftReady: null, leftDelayed: null, leftHeld: null };
    expect(said(unknown)).toEndWith(
      "; left: unknown, for the broker cannot tell or the budget had no room to ask",
    );
  });

  test("tells its times without a clock's noise", async () => {
    const world = new World();
    await world.add(10);
    const report = await drained(world, define(world.takes(700.123)), { budget: { maxMs: 2_000 } });
    for (const ms of [report.ms, 100 * report.noRoomFor!.jobMs, 100 * report.noRoomFor!.leftMs])
      expect(Math.abs(ms - Math.round(ms))).toBeLessThan(1e-6);
  });

  test("says that nothing is in sight when nothing is", async () => {
    const world = new World();
    await world.add(2, { delayMs: 5 });
    await world.platform.pass(10);
    expect(
      await drained(
        world,
        define(() => {}),
      ),
    ).toMatchObject({ ...NOTHING_LEFT, nextDueMs: null });
  });

  test("is paused when all that is ready is in queues that are paused", async () => {
    const world = new World();
    const definition = defineWorker({
      queues: ["a", "b"].map((name) => queue(name).handle(() => {})),
    });
    await world.add(2, {}, "a");
    await world.add(3, {}, "b");
    await pause(world, "b");
    expect(await drained(world, definition)).toMatchObject({
      acked: 2,
      stopped: "paused",
      left: 3,
      leftReady: 3,
      nextDueMs: null,
    });
  });

  test("is not, of a paused queue with nothing ready, nor when work came to another meanwhile", async () => {
    const world = new World();
    await pause(world, "work");
    await world.add(1, { delayMs: 1_000 });
    expect(
      await drained(
        world,
        define(() => {}),
      ),
    ).toMatchObject({ stopped: "empty", leftDelayed: 1 });

    const other = new World();
    await other.add(1, {}, "b");
    await pause(other, "b");
    let claims = 0;
    other.broker.fault = ({ verb, claim }) => {
      if (claim !== undefined) claims += 1;
      if (verb === "sizes" && claims > 0) void other.add(claims > 0 ? 1 : 0, {}, "a");
      return undefined;
    };
    const definition = defineWorker({ queues: ["a", "b"].map((name) => queue(name).handle(() => {})) });
    expect((await drained(other, definition)).stopped).toBe("empty");
  });

  test("says what of the budget ended it, paused or not", async () => {
    const world = new World();
    await world.add(5);
    const report = await drained(
      world,
      define(async () => await pause(world, "work"), { prefetch: 1 }),
      { budget: { maxJobs: 1 } },
    );
    expect(report).toMatchObject({ acked: 1, stopped: "jobs", left: 4, leftReady: 4 });
  });

  test("leaves out what the broker cannot tell", async () => {
    const world = new World({ lacks: ["sizes"] });
    await world.add(1);
    await pause(world, "work");
    expect(
      await drained(
        world,
        define(() => {}),
      ),
    ).toMatchObject({
      stopped: "empty",
      left: null,
      leftReady: null,
      leftDelayed: null,
      leftHeld: null,
    });
  });
});

describe("a budget of processor time", () => {
  test("is one of jobs, by what a job is said to take", async () => {
    for (const [cpuMsPerJob, jobs] of [
      [0.3, 33],
      [2, 5],
      [10, 1],
    ] as const) {
      const world = new World({ simulated: { limits: { cpuMs: 10 } } });
      await world.add(40);
      const report = await drained(
        world,
        define(() => {}),
        { budget: { cpuMsPerJob } },
      );
      expect(report).toMatchObject({ acked: jobs, stopped: "jobs", left: 40 - jobs });
    }
  });

  test("bounds nothing without it, nor where processor time has no limit, and never raises maxJobs", async () => {
    const world = new World({ simulated: { limits: { cpuMs: 10 } } });
    await world.add(90);
    expect(
      (
        await drained(
          world,
          define(() => {}),
          { budget: { cpuMsPerJob: 0.1, maxJobs: 20 } },
        )
      ).acked,
    ).toBe(20);
    expect(
      (
        await drained(
          world,
          define(() => {}),
        )
      ).acked,
    ).toBe(70);
    const free = new World();
    await free.add(20);
    expect(
      (
        await drained(
          free,
          define(() => {}),
          { budget: { cpuMsPerJob: 1_000 } },
        )
      ).acked,
    ).toBe(20);
  });

  test("that no job fits into is refused", async () => {
    const world = new World({ simulated: { limits: { cpuMs: 10 } } });
    for (const [cpuMsPerJob, is] of [
      [11, "11"],
      [0, "0"],
      [-1, "-1"],
      [Number.NaN, "NaN"],
      ["2", "a string"],
    ] as const) {
      await expect(
        drained(
          world,
          define(() => {}),
          { budget: { cpuMsPerJob: cpuMsPerJob as number } },
        ),
      ).rejects.toThrow(`cpuMsPerJob is ${is}; give milliseconds above 0 and up to the invocation's 10`);
    }
  });
});
