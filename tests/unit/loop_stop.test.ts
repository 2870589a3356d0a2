import { describe, expect, test } from "bun:test";
import { WorkerStoppedError } from "../../src/errors.ts";
import { queue } from "../../src/queue.ts";
import type { StandardSchema } from "../../src/schemas.ts";
import { defineWorker } from "../../src/worker.ts";
import type { Fault } from "../support/faulty_broker.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

/** Rejects with the signal's reason once it is aborted. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason));
  });
}

describe("after a stop", () => {
  test("no claim leaves and no job starts; what waited goes back uncharged and in its order", async () => {
    const world = new World({ roundTripMs: 4 });
    const ids = await world.add(40);
    const ran: string[] = [];
    const worker = await world.start(world.takes(10, ran), { prefetch: 16 });
    await world.until(() => ran.length === 20);
    const started = ran.length;
    const stopping = worker.stop("a test");
    const claims = world.broker.claims.length;
    await world.platform.run(stopping);
    await world.platform.pass(60_000);
    expect(ran.length).toBe(started);
    expect(world.broker.claims.length).toBe(claims);
    const left = await world.peek("ready");
    expect(left.map((job) => job.id)).toEqual(ids.slice(started));
    expect(left.every((job) => job.attempts === 0)).toBe(true);
    expect(await world.sizes()).toMatchObject({ held: 0, delayed: 0, dead: 0 });
    expect(worker.stats()[0]).toMatchObject({ acked: started, lost: 0 });
    expect(world.told("stopping")).toMatchObject([{ reason: "a test", running: 1, graceMs: 10_000 }]);
    expect(world.told("stopped").length).toBe(1);
  });

  test("no timer is left and nothing is told any more", async () => {
    const world = new World({ roundTripMs: 4 });
    await world.add(40);
    const worker = await world.start(world.takes(10), { prefetch: 16 });
    await world.platform.pass(50);
    await world.platform.run(worker.stop());
    await world.platform.pass(0);
    expect(world.platform.timers).toBe(0);
    expect(world.events.at(-1)?.type).toBe("stopped");
    await world.platform.pass(120_000);
    expect(world.events.at(-1)?.type).toBe("stopped");
  });

  test("running handlers get graceMs, and what they finish in it is settled", async () => {
    const world = new World();
    await world.add(3);
    const worker = await world.start(world.takes(900), { concurrency: 3 }, { graceMs: 1_000 });
    await world.platform.pass(10);
    await world.platform.run(worker.stop());
    expect(world.platform.now()).toBeLessThan(1_000);
    expect(worker.stats()[0]).toMatchObject({ acked: 3, released: 0 });
  });

  test("then their signal, and one that heeds it by a throw goes back uncharged", async () => {
    const world = new World();
    await world.add(1);
    let reason: unknown;
    const worker = await world.start(
      async (job) => {
        try {
          await aborted(job.signal);
        } catch (error) {
          reason = error;
          throw error;
        }
      },
      {},
      { graceMs: 1_000 },
    );
    await world.platform.pass(10);
    await world.platform.run(worker.stop("the end"));
    expect(world.platform.now()).toBe(1_010);
    expect(reason).toBeInstanceOf(WorkerStoppedError);
    expect(String(reason)).toContain("the end");
    expect(worker.stats()[0]).toMatchObject({ released: 1, retried: 0 });
    expect((await world.peek("ready"))[0]).toMatchObject({ attempts: 0 });
  });

  test("one that heeds it by returning is acked", async () => {
    const world = new World();
    await world.add(1);
    const worker = await world.start((job) => aborted(job.signal).catch(() => {}), {}, { graceMs: 100 });
    await world.platform.pass(10);
    await world.platform.run(worker.stop());
    expect(worker.stats()[0]).toMatchObject({ acked: 1, released: 0 });
  });

  test("one that ignores it is left behind after abortWaitMs, named, and costs its job an attempt; its lease is renewed no more", async () => {
    const world = new World();
    const [id] = await world.add(1);
    const worker = await world.start(
      () => new Promise(() => {}),
      { leaseMs: 3_000 },
      { graceMs: 100, abortWaitMs: 50 },
    );
    await world.platform.pass(10);
    await world.platform.run(worker.stop());
    expect(world.platform.now()).toBe(160);
    expect(world.told("abandoned").map((one) => one.jobId)).toEqual([id as string]);
    expect(worker.stats()[0]).toMatchObject({ retried: 1, abandoned: 1, running: 0, held: 0 });
    expect(await world.peek("delayed")).toMatchObject([{ attempts: 1 }]);
    expect(world.told("finished")).toMatchObject([{ error: expect.stringContaining("ignored its signal") }]);
    const renewals = world.broker.count("renew");
    await world.platform.pass(10_000);
    expect(world.broker.count("renew")).toBe(renewals);
    expect(world.platform.timers).toBe(0);
  });

  test("a left handler that ends later changes nothing and tells nothing", async () => {
    const world = new World();
    await world.add(1);
    const worker = await world.start(world.takes(5_000), {}, { graceMs: 0, abortWaitMs: 0 });
    await world.platform.pass(10);
    await world.platform.run(worker.stop());
    const { length } = world.events;
    const requests = world.broker.count();
    await world.platform.pass(20_000);
    expect(world.events.length).toBe(length);
    expect(world.broker.count()).toBe(requests);
  });

  test("a job whose body is still being checked is not started, and goes back uncharged", async () => {
    const world = new World();
    await world.add(1);
    const slow: StandardSchema<unknown, unknown> = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: async (value) => {
          await world.platform.sleep(500);
          return { value };
        },
      },
    };
    let called = 0;
    const worker = await world.startDefinition(
      defineWorker({
        queues: [
          queue("work", { body: slow }).handle(() => {
            called += 1;
          }),
        ],
      }),
    );
    await world.platform.pass(100);
    await world.platform.run(worker.stop());
    await world.platform.pass(1_000);
    expect(called).toBe(0);
    expect((await world.peek("ready"))[0]).toMatchObject({ attempts: 0 });
  });

  test("it may be called twice, and both answer when it is over", async () => {
    const world = new World();
    await world.add(1);
    const worker = await world.start(world.takes(500));
    await world.platform.pass(10);
    const first = worker.stop("first");
    await world.platform.pass(100);
    const second = worker.stop("second");
    let over = 0;
    void first.then(() => {
      over += 1;
    });
    void second.then(() => {
      over += 1;
    });
    await world.platform.pass(300);
    expect(over).toBe(0);
    await world.platform.run(Promise.all([first, second, worker.done]));
    expect(world.told("stopping").map((one) => one.reason)).toEqual(["first"]);
    expect(worker.stats()[0]?.acked).toBe(1);
  });

  test("a watch is closed", async () => {
    const world = new World();
    const worker = await world.start(() => {});
    await world.platform.pass(10);
    expect(world.broker.breakWatches.size).toBe(1);
    await world.platform.run(worker.stop());
    expect(world.broker.breakWatches.size).toBe(0);
  });
});

describe("a stop while a claim is under way", () => {
  test("what it brings is released, uncharged and in its order", async () => {
    const world = new World({ roundTripMs: 100, lacks: ["wake"] });
    const ids = await world.add(10);
    const ran: string[] = [];
    const worker = await world.start(world.takes(10, ran), { prefetch: 16 });
    // The claim has taken effect, and its answer is on the way.
    await world.until(() => world.platform.now() >= (world.broker.claims[0]?.at ?? 0) + 60);
    expect((await world.sizes()).held).toBe(10);
    await world.platform.run(worker.stop());
    expect(ran).toEqual([]);
    const left = await world.peek("ready");
    expect(left.map((job) => job.id)).toEqual(ids);
    expect(left.every((job) => job.attempts === 0)).toBe(true);
  });

  test("an engine's wait for a first job is ended", async () => {
    const world = new World({ waits: true });
    const worker = await world.start(() => {});
    await world.platform.pass(1_000);
    expect(world.broker.claims.at(-1)?.claim?.waitMs).toBeGreaterThan(1_000);
    await world.platform.run(worker.stop());
    expect(world.platform.now()).toBeLessThan(1_100);
  });

  test("a claim that waits for a renewal before it leaves is not sent any more", async () => {
    // A verdict that rides on the claim awaits the renewal of its lease, and the stop comes meanwhile.
    const world = new World();
    await world.add(40);
    world.broker.fault = (asked) => (asked.verb === "renew" ? { delayMs: 400, replyMs: 0 } : undefined);
    const worker = await world.start(world.takes(300), { prefetch: 4, leaseMs: 3_000, claimAhead: false });
    await world.until(() => world.told("finished").length === 4);
    await world.platform.pass(20);
    const claims = world.broker.claims.length;
    expect(world.broker.of("renew")[0]?.answeredAt).toBeUndefined();
    const stopping = worker.stop();
    await world.platform.run(stopping);
    expect(world.broker.claims.length).toBe(claims);
    expect((await world.sizes()).held).toBe(0);
  });
});

describe("a stop after a claim whose answer was lost", () => {
  for (const fault of ["replyLost", "hangsAfter"] as const) {
    test(`${fault}: its jobs are claimable at once, uncharged`, async () => {
      const world = new World();
      const ids = await world.add(5);
      world.broker.fault = (asked) => (asked.claim === undefined ? undefined : fault);
      const worker = await world.start(() => {}, { prefetch: 8 });
      await world.platform.pass(1);
      expect((await world.sizes()).held).toBe(5);
      world.broker.fault = (asked) => (asked.claim === undefined ? undefined : "lost");
      await world.platform.run(worker.stop());
      expect(world.broker.count("abandon")).toBeGreaterThan(0);
      const left = await world.peek("ready");
      expect(left.map((job) => job.id)).toEqual(ids);
      expect(left.every((job) => job.attempts === 0)).toBe(true);
    });
  }

  test("giving it back is tried again when that fails too", async () => {
    const world = new World();
    await world.add(5);
    world.broker.fault = (asked) => {
      if (asked.claim !== undefined) return "replyLost";
      return asked.verb === "abandon" && asked.nth < 3 ? "lost" : undefined;
    };
    const worker = await world.start(() => {}, { prefetch: 8 });
    await world.platform.pass(1);
    await world.platform.run(worker.stop());
    expect(world.broker.count("abandon")).toBe(4);
    expect((await world.sizes()).held).toBe(0);
  });

  test("an engine that cannot is not asked", async () => {
    const world = new World({ lacks: ["abandon"] });
    await world.add(5);
    world.broker.fault = (asked) => (asked.claim === undefined ? undefined : "replyLost");
    const worker = await world.start(() => {}, { prefetch: 8 });
    await world.platform.pass(1);
    await world.platform.run(worker.stop());
    expect(world.platform.now()).toBeLessThan(100);
    expect(world.broker.count("abandon")).toBe(0);
  });
});

describe("a stop while the broker is away", () => {
  const times = { graceMs: 400, abortWaitMs: 300, settleWaitMs: 2_000 };

  for (const fault of ["lost", "hangs", "throws"] as const) {
    test(`is bounded when requests are ${fault}`, async () => {
      const world = new World();
      await world.add(10);
      let away: Fault | undefined;
      world.broker.fault = () => away;
      const worker = await world.start(world.takes(100), { prefetch: 4 }, times);
      await world.platform.pass(150);
      away = fault;
      await world.platform.pass(30_000);
      const from = world.platform.now();
      await world.platform.run(worker.stop());
      expect(world.platform.now() - from).toBeLessThanOrEqual(400 + 300 + 2_000 + 1_000);
      expect(world.told("stopped").length).toBe(1);
    });
  }

  test("is bounded when closing a watch hangs", async () => {
    const world = new World();
    const worker = await world.start(() => {}, {}, times);
    world.broker.closeWatch = () => new Promise<void>(() => {});
    await world.platform.run(worker.stop());
    expect(world.platform.now()).toBeLessThanOrEqual(1_000);
  });

  test("a broker that comes back within settleWaitMs gets the verdicts, however long it was away", async () => {
    const world = new World();
    await world.add(1);
    let away = false;
    world.broker.fault = () => (away ? "lost" : undefined);
    const worker = await world.start(world.takes(100), { leaseMs: 120_000 }, { settleWaitMs: 5_000 });
    await world.platform.pass(10);
    away = true;
    // The pauses between tries have grown to ten seconds by now.
    await world.platform.pass(60_000);
    const stopping = worker.stop();
    await world.platform.pass(3_500);
    away = false;
    await world.platform.run(stopping);
    expect(worker.stats()[0]).toMatchObject({ acked: 1, lost: 0 });
    expect(await world.sizes()).toMatchObject({ ready: 0, held: 0 });
  });

  test("what was to be sent again is sent again soon, whatever pause had been reached", async () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const world = new World({ simulated: { seed } });
      await world.add(1);
      let away = false;
      world.broker.fault = () => (away ? "lost" : undefined);
      const worker = await world.start(world.takes(100), { leaseMs: 120_000 }, { settleWaitMs: 150 });
      await world.platform.pass(10);
      away = true;
      await world.platform.pass(60_000);
      away = false;
      await world.platform.run(worker.stop());
      expect(worker.stats()[0]).toMatchObject({ acked: 1, lost: 0 });
    }
  });

  test("an answer that comes when all is over changes nothing and tells nothing", async () => {
    const world = new World({ lacks: ["wake", "abandon"] });
    await world.add(5);
    world.broker.fault = (asked) => (asked.claim === undefined ? undefined : { delayMs: 10, replyMs: 3_000 });
    const worker = await world.start(() => {}, { prefetch: 8 }, { settleWaitMs: 100 });
    await world.platform.pass(20);
    await world.platform.run(worker.stop());
    expect(world.platform.now()).toBeLessThan(3_000);
    const told = world.events.length;
    const requests = world.broker.count();
    await world.platform.pass(120_000);
    expect(world.events.length).toBe(told);
    expect(world.broker.count()).toBe(requests);
    expect(world.platform.timers).toBe(0);
  });

  test("verdicts leave though a claim hangs", async () => {
    const world = new World({ roundTripMs: 100 });
    await world.add(32);
    let ahead = false;
    world.broker.fault = (asked) => {
      if (ahead || asked.claim === undefined || asked.nth === 0) return undefined;
      ahead = true;
      return "hangs";
    };
    const worker = await world.start(world.takes(20), { prefetch: 16 });
    await world.until(() => ahead);
    const stopping = worker.stop();
    await world.platform.pass(1_000);
    const running = worker.stats()[0]?.running;
    expect(running).toBe(0);
    const { acked = 0, released = 0 } = worker.stats()[0] ?? {};
    expect(acked + released).toBeGreaterThan(0);
    await world.platform.run(stopping);
    expect(await world.sizes()).toMatchObject({
      held: world.broker.log.find((one) => one.answeredAt === undefined)?.settle.length ?? 0,
    });
  });
});
