/** Faults that simulated worlds found, each by itself. */
import { describe, expect, test } from "bun:test";
import { drain } from "../../src/drain.ts";
import { PermanentError } from "../../src/errors.ts";
import { queue } from "../../src/queue.ts";
import { startWorker } from "../../src/start.ts";
import { defineWorker } from "../../src/worker.ts";
import { Machine } from "../simulation/machine.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

/** Makes suspects of the jobs there are: a worker claims them, so often, and vanishes each time. */
async function vanish(world: World, times: number, max: number, name = "work"): Promise<void> {
  for (let i = 0; i < times; i += 1) {
    const leaseId = `gone-${name}-${world.platform.now()}-${i}`;
    await world.engineQueue(name, 100).claim({ leaseId, max, waitMs: 0 });
    await world.platform.pass(101);
  }
}

/** The ids of the jobs held, in all of these queues. */
async function heldIn(world: World, ...names: string[]): Promise<string[]> {
  const held: string[] = [];
  for (const name of names) held.push(...(await world.peek("held", name)).map((job) => job.id));
  return held;
}

test("on a clock that shows less than zero jobs are claimed, and settled when they are done", async () => {
  // The last verdict rides on the next claim, or leaves alone where the claim before came back short.
  for (const prefetch of [1, 4]) {
    const world = new World();
    const machine = new Machine(world.platform, "early", 1, { skewMs: -1_000_000, driftPpm: 0, early: 0 });
    await world.add(3);
    const definition = defineWorker({ queues: [queue("work").handle(() => {}, { prefetch })] });
    const worker = await world.platform.run(
      startWorker(definition, { broker: world.broker, platform: machine, on: world.on }),
    );
    await world.until(() => world.told("settled").length === 3, 1_000);
    // And once it has nothing to look for any more, so that no claim comes along for the verdicts to ride on.
    await world.platform.pass(500);
    await world.add(3);
    await world.until(() => world.told("settled").length === 6, 1_000);
    await world.platform.run(worker.stop());
  }
});

test("a job that hangs has its worker take one batch ahead, not the whole queue", async () => {
  const world = new World({ roundTripMs: 20 });
  await world.add(100);
  let most = 0;
  let ran = 0;
  const worker = await world.start(
    () => {
      ran += 1;
      return ran === 20 ? world.platform.sleep(20_000) : undefined;
    },
    { prefetch: 4 },
  );
  for (let ms = 0; ms < 15_000; ms += 100) {
    await world.platform.pass(100);
    most = Math.max(most, worker.stats()[0]?.held ?? 0);
  }
  expect(most).toBeLessThanOrEqual(8);
  await world.untilEmpty();
  await world.platform.run(worker.stop());
});

describe("last chances", () => {
  test("of two workers without any latency: they do not hand them to and fro for ever", async () => {
    for (const names of [["work"], ["work", "other"]]) {
      const world = new World();
      await world.add(2);
      await vanish(world, 2, 2);
      const definition = defineWorker({
        queues: names.map((name) => queue(name).handle(() => {}, { maxAttempts: 3, prefetch: 4 })),
      });
      const lines = [world.broker.another(), world.broker.another()];
      const from = world.platform.now();
      const workers = await Promise.all(lines.map((line) => world.startDefinition(definition, line)));
      await world.untilEmpty();
      expect(world.platform.now() - from).toBeLessThan(1_000);
      expect(await world.peek("dead")).toEqual([]);
      for (const worker of workers) await world.platform.run(worker.stop());
    }
  });

  test("have left before another job of their claim starts, which may kill the worker", async () => {
    const world = new World({ roundTripMs: 40 });
    const [last] = await world.add(1);
    await vanish(world, 2, 1);
    const [other] = await world.add(1);
    const heldBeside: string[][] = [];
    const worker = await world.start(
      async (job) => {
        heldBeside.push((await heldIn(world, "work")).filter((id) => id !== job.id));
      },
      { maxAttempts: 3, prefetch: 4 },
    );
    await world.untilEmpty();
    expect(world.told("started").map((one) => one.jobId)).toEqual([other, last] as string[]);
    expect(heldBeside).toEqual([[], []]);
    await world.platform.run(worker.stop());
  });

  test("of two queues that come at one time: the one starts when the other has left", async () => {
    for (const lacks of [[], ["exchange"]] as const) {
      const world = new World({ roundTripMs: 40, lacks });
      for (const name of ["one", "two"]) {
        await world.add(1, {}, name, `${name}-`);
        await vanish(world, 2, 1, name);
      }
      const heldBeside: string[][] = [];
      const handler = async (job: { id: string }) => {
        heldBeside.push((await heldIn(world, "one", "two")).filter((id) => id !== job.id));
        await world.platform.sleep(10);
      };
      const worker = await world.startDefinition(
        defineWorker({
          queues: ["one", "two"].map((name) => queue(name).handle(handler, { maxAttempts: 3 })),
        }),
      );
      await world.untilEmpty("one");
      await world.untilEmpty("two");
      expect(heldBeside).toEqual([[], []]);
      await world.platform.run(worker.stop());
    }
  });

  test("whose lease is over when they are looked at hold nothing back", async () => {
    const world = new World({ roundTripMs: 20 });
    await world.add(3);
    await vanish(world, 2, 3);
    await world.add(3);
    let late = 1;
    const starting = startWorker(
      defineWorker({
        queues: ["work", "other"].map((name) =>
          queue(name).handle(() => {}, { maxAttempts: 3, prefetch: 3, leaseMs: 1_000 }),
        ),
      }),
      {
        broker: world.broker,
        platform: world.platform,
        // So long the answer is looked at that the lease has run out by then. The other queue's claim is under way.
        on: (event) => {
          if (event.type === "claimed" && event.got === 3 && late-- > 0) world.platform.spend(1_000);
        },
      },
    );
    const worker = await world.platform.run(starting);
    await world.untilEmpty("work", 60_000);
    expect(late).toBeLessThan(1);
    // The last chances are used up; what came behind them is done.
    expect(await world.sizes()).toMatchObject({ ready: 0, held: 0, dead: 3 });
    await world.platform.run(worker.stop());
    expect(worker.stats()[0]?.acked).toBe(3);
  });
});

test("no verdict is sent while its lease is being renewed, though another renewal began meanwhile", async () => {
  let renewed = 0;
  for (let seed = 1; seed <= 40; seed += 1) {
    const world = new World({ lacks: ["exchange"], roundTripMs: 40, simulated: { seed } });
    // The first verdict hangs, so two leases come due for renewal one after the other.
    world.broker.fault = ({ verb, nth }) => (verb === "settle" && nth === 0 ? "hangs" : undefined);
    await world.add(2);
    const worker = await world.start(() => {}, { prefetch: 1, leaseMs: 2_000, requestTimeoutMs: 600 });
    await world.untilEmpty();
    const renewals = world.broker.of("renew");
    renewed += renewals.length;
    for (const { at, settle } of world.broker.of("settle")) {
      const under = renewals.filter((one) => one.at <= at && (one.answeredAt ?? Infinity) > at);
      const leases = new Set(under.flatMap((one) => one.renew));
      expect(settle.filter(({ delivery }) => leases.has(delivery.leaseId))).toEqual([]);
    }
    await world.platform.run(worker.stop());
  }
  expect(renewed).toBeGreaterThan(20);
});

test("a claim that was held back by a renewal is not sent after a stop", async () => {
  const world = new World({ roundTripMs: 10 });
  world.broker.fault = ({ verb }) => (verb === "renew" ? { delayMs: 400 } : undefined);
  await world.add(3);
  const options = { prefetch: 1, leaseMs: 3_000, settleWithinMs: 0 };
  const worker = await world.start(() => world.platform.sleep(1_100), options);
  // Its renewal is under way when the job is done: its verdict, and the claim it is to ride on, wait for the answer.
  await world.until(() => world.told("finished").length === 1);
  const stoppedAt = world.platform.now();
  expect(world.broker.count("renew")).toBe(1);
  await world.platform.run(worker.stop());
  expect(world.broker.claims.filter(({ at }) => at >= stoppedAt)).toEqual([]);
  expect(await world.sizes()).toMatchObject({ ready: 2, held: 0, dead: 0 });
});

test("a claim that was held back by a renewal is not sent when the renewal is refused", async () => {
  const world = new World({ roundTripMs: 10 });
  world.broker.fault = ({ verb }) => (verb === "renew" ? "refused" : undefined);
  await world.add(3);
  const options = { prefetch: 1, leaseMs: 3_000, settleWithinMs: 0 };
  const worker = await world.start(() => world.platform.sleep(992), options);
  await world.until(() => world.told("finished").length === 1);
  const at = world.platform.now();
  // The job is done while the renewal is under way.
  expect([world.broker.count("renew"), world.told("refused").length]).toEqual([1, 0]);
  await expect(world.platform.run(worker.done)).rejects.toThrow("keys may be evicted");
  expect(world.broker.claims.filter((claim) => claim.at >= at)).toEqual([]);
});

describe("a drain", () => {
  const definition = defineWorker({
    queues: ["one", "two"].map((name) => queue(name).handle(() => {}, { requestTimeoutMs: 5_000 })),
  });

  test("gives up on an opening that takes longer than its budget", async () => {
    const world = new World();
    world.broker.fault = ({ verb }) => (verb === "open" ? "hangs" : undefined);
    const budget = { maxMs: 300 };
    const running = drain(definition, { broker: world.broker, platform: world.platform, budget });
    await expect(world.platform.run(running)).rejects.toThrow("did not answer open within 300 ms");
    expect(world.platform.now()).toBe(300);
  });

  test("whose empty answer was lost looks again before it calls the queue empty", async () => {
    const world = new World({ roundTripMs: 20 });
    world.broker.fault = ({ verb, nth }) => (verb === "exchange" && nth === 0 ? "replyLost" : undefined);
    const one = { broker: world.broker, platform: world.platform, queues: ["one"] };
    const running = drain(definition, one);
    // The lease of the lost claim is used up: sent again it brings nothing, though there is a job by now.
    await world.platform.pass(35);
    await world.add(1, {}, "one");
    expect(await world.platform.run(running)).toMatchObject({ jobs: 1, acked: 1, stopped: "empty" });
  });

  test("of two queues takes no more jobs than its budget, though both claim at one time", async () => {
    const world = new World({ roundTripMs: 20 });
    for (const name of ["one", "two"]) await world.add(3, {}, name);
    for (const maxJobs of [1, 2]) {
      const report = await world.platform.run(
        drain(definition, { broker: world.broker, platform: world.platform, budget: { maxJobs } }),
      );
      expect(report).toMatchObject({ jobs: maxJobs, acked: maxJobs, stopped: "jobs" });
    }
  });
});

test("a PermanentError is the last word, after the stop's signal too; any other throw is taken for its doing", async () => {
  for (const permanent of [true, false]) {
    const world = new World();
    await world.add(1);
    const worker = await world.start(
      async (job) => {
        await new Promise((resolve) => job.signal.addEventListener("abort", resolve));
        throw permanent ? new PermanentError("never") : new Error("interrupted");
      },
      {},
      { graceMs: 10 },
    );
    await world.until(() => world.told("started").length === 1);
    await world.platform.run(worker.stop());
    const { ready, dead } = await world.sizes();
    expect({ ready, dead }).toEqual(permanent ? { ready: 0, dead: 1 } : { ready: 1, dead: 0 });
  }
});
