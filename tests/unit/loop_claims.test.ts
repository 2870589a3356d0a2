import { describe, expect, test } from "bun:test";
import { Asking } from "../../src/asking.ts";
import type { BrokerLimits } from "../../src/broker.ts";
import { queue } from "../../src/queue.ts";
import { defineWorker, type WorkerQueue } from "../../src/worker.ts";
import type { Asked } from "../support/faulty_broker.ts";
import { expectNoOverlap, noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

const LIMITS: BrokerLimits = {
  maxBatch: 1_000,
  maxEnqueue: 1_000,
  maxInFlight: Number.POSITIVE_INFINITY,
  maxBodyBytes: 1_000_000,
  leaseMs: 30_000,
  renewable: true,
  exclusive: false,
};

/** How many jobs the worker has in hand and has not started. */
function waiting(world: World): number {
  const received = world.told("claimed").reduce((sum, one) => sum + one.got, 0);
  return received - world.told("started").length;
}

describe("a slot is reserved before a claim", () => {
  for (const [concurrency, prefetch] of [
    [1, 1],
    [1, 16],
    [4, 1],
    [4, 16],
    [8, 3],
    [3, "auto"],
  ] as const) {
    test(`concurrency ${concurrency}, prefetch ${prefetch}: nothing waits when a claim leaves`, async () => {
      const world = new World({ roundTripMs: 7 });
      await world.add(200);
      // Collected: what is thrown here counts as the link's failure.
      const violations: unknown[] = [];
      world.broker.fault = (asked) => {
        if (asked.claim === undefined) return undefined;
        const running = worker?.stats()[0]?.running ?? 0;
        const { max } = asked.claim;
        const most =
          prefetch === "auto" ? 16 * (concurrency - running) : Math.max(prefetch, concurrency - running);
        const asMany = prefetch === "auto" ? max <= most : max === most;
        if (waiting(world) > 0 || running >= concurrency || !asMany) {
          violations.push({ at: asked.at, waiting: waiting(world), running, max });
        }
        return undefined;
      };
      let most = 0;
      let busiest = 0;
      let running = 0;
      let worker: Awaited<ReturnType<World["start"]>> | undefined;
      worker = await world.start(
        async () => {
          running += 1;
          busiest = Math.max(busiest, running);
          most = Math.max(most, waiting(world));
          await world.platform.sleep(10 + world.platform.random() * 20);
          running -= 1;
        },
        { concurrency, prefetch, claimAhead: false },
      );
      await world.untilEmpty();
      expect(violations).toEqual([]);
      expect(busiest).toBeLessThanOrEqual(concurrency);
      // What a claim brought, less the slot it was made for.
      expect(most).toBeLessThan(prefetch === "auto" ? 16 * concurrency : Math.max(prefetch, concurrency));
      await world.platform.run(worker.stop());
    });
  }

  test("claimed ahead, at most one claim more is in hand", async () => {
    const world = new World({ roundTripMs: 20 });
    await world.add(400);
    let most = 0;
    const worker = await world.start(
      async () => {
        most = Math.max(most, worker.stats()[0]?.held ?? 0);
        await world.platform.sleep(5);
      },
      { concurrency: 2, prefetch: 16 },
    );
    await world.untilEmpty();
    expect(most).toBeLessThanOrEqual(32);
    expectNoOverlap(world.broker.claims);
    await world.platform.run(worker.stop());
  });

  test("a claim never asks for more than the engine hands out", async () => {
    const world = new World({ limits: { maxBatch: 5, maxInFlight: 7 } });
    await world.add(100);
    const worker = await world.start(world.takes(10), { concurrency: 4 });
    let most = 0;
    const claims = new Set<number>();
    for (let i = 0; i < 400; i += 1) {
      await world.platform.pass(1);
      most = Math.max(most, (await world.sizes()).held);
    }
    for (const { claim } of world.broker.claims) claims.add(claim?.max ?? 0);
    expect(Math.max(...claims)).toBeLessThanOrEqual(5);
    expect(most).toBeLessThanOrEqual(7);
    await world.untilEmpty();
    await world.platform.run(worker.stop());
  });

  test("an engine that hands out one at a time is still served without a pause between two jobs", async () => {
    const world = new World({ roundTripMs: 4, limits: { maxInFlight: 1 } });
    await world.add(20);
    const worker = await world.start(world.takes(10));
    const from = world.platform.now();
    await world.untilEmpty();
    // The verdict of the one makes room for the next, in one request.
    expect(world.broker.count("exchange")).toBeLessThanOrEqual(22);
    expect(world.platform.now() - from).toBeLessThanOrEqual(20 * 14 + 10);
    await world.platform.run(worker.stop());
  });
});

describe("how much a claim asks for", () => {
  test("a fixed prefetch asks for as much, and never for less than the free slots", async () => {
    const world = new World();
    await world.add(40);
    const worker = await world.start(world.takes(10), { concurrency: 8, prefetch: 3, claimAhead: false });
    await world.untilEmpty();
    expect(world.broker.claims[0]?.claim?.max).toBe(8);
    for (const { claim } of world.broker.claims.slice(1)) {
      expect(claim?.max).toBeGreaterThanOrEqual(3);
    }
    await world.platform.run(worker.stop());
  });

  test("the rule works per free slot, and a short claim counts as what came for each", () => {
    const { options } = defineWorker({ queues: [queue("work").handle(() => {}, { concurrency: 4 })] })
      .queues[0] as WorkerQueue;
    const asking = new Asking(
      options,
      { ...LIMITS, maxBatch: 50 },
      {
        averageMs: 10,
        prefetch: 1,
        requestsPerJob: 0,
      },
    );
    const claim = (slots: number, got: (asked: number) => number): number => {
      const asked = asking.wanted(slots, 0);
      asking.answered(asked, got(asked), slots, 1);
      return asked;
    };
    const full = (asked: number) => asked;
    expect([claim(4, full), claim(3, full)]).toEqual([4, 3]);
    // Doubled after two full claims; then 6 of 8 came, which is 2 for each of four; 1 of 4 is 1 for each of two.
    expect(claim(4, () => 6)).toBe(8);
    expect(claim(2, () => 1)).toBe(4);
    expect([claim(4, full), claim(4, full), claim(1, full), claim(4, full)]).toEqual([4, 4, 2, 8]);
    expect([claim(4, full), claim(4, full), claim(4, full)]).toEqual([16, 16, 32]);
    expect([claim(4, full), claim(4, full)]).toEqual([32, 50]);
  });

  test("the demo's second phase: 200 jobs of 10 ms take at most 24 claims", async () => {
    const world = new World();
    await world.add(200);
    const worker = await world.start(world.takes(10));
    await world.untilEmpty();
    expect(world.told("claimed").filter((one) => one.got > 0).length).toBeLessThanOrEqual(24);
    await world.platform.run(worker.stop());
  });

  test("the demo's third phase: jobs of 300 ms are claimed one by one", async () => {
    const world = new World();
    await world.add(10);
    const worker = await world.start(world.takes(300));
    await world.untilEmpty();
    expect(new Set(world.told("claimed").map((one) => one.asked))).toEqual(new Set([1]));
    await world.platform.run(worker.stop());
  });
});

describe("verdicts ride on the next claim", () => {
  for (const roundTripMs of [0, 10]) {
    test(`1,600 instant jobs at batches of 16 over a round trip of ${roundTripMs} ms cost one request a batch`, async () => {
      const world = new World({ roundTripMs });
      await world.add(1_600);
      const worker = await world.start(() => {}, { prefetch: 16 });
      await world.untilEmpty();
      expect(world.broker.count("exchange")).toBe(101);
      expect(world.broker.count("settle", "claim", "renew")).toBe(0);
      await world.platform.run(worker.stop());
      expect(worker.stats()[0]?.acked).toBe(1_600);
    });
  }

  test("verdicts do not leave alone while a claim is on its way", async () => {
    const world = new World({ roundTripMs: 20 });
    await world.add(400);
    const worker = await world.start(world.takes(1), { prefetch: 16 });
    await world.untilEmpty();
    expect(
      world.broker.of("exchange").filter((asked) => asked.claim === undefined).length,
    ).toBeLessThanOrEqual(1);
    await world.platform.run(worker.stop());
  });

  test("without exchange a batch costs two requests", async () => {
    const world = new World({ lacks: ["exchange"] });
    await world.add(160);
    const worker = await world.start(() => {}, { prefetch: 16 });
    await world.untilEmpty();
    expect(world.broker.count("claim")).toBe(11);
    expect(world.broker.count("settle")).toBe(10);
    await world.platform.run(worker.stop());
  });

  test("beside a long job a verdict leaves alone within settleWithinMs", async () => {
    for (const lacks of [[], ["exchange"]] as const) {
      const world = new World({ lacks });
      await world.add(4);
      let nth = 0;
      const worker = await world.start(
        async () => {
          nth += 1;
          await world.platform.sleep(nth === 4 ? 5_000 : 10);
        },
        { prefetch: 4, settleWithinMs: 100 },
      );
      await world.until(() => world.told("settled").length === 3);
      const first = world.events.findIndex((event) => event.type === "finished");
      const settled = world.events.findIndex((event) => event.type === "settled");
      const waited = (world.eventTimes[settled] as number) - (world.eventTimes[first] as number);
      expect(waited).toBeGreaterThan(0);
      expect(waited).toBeLessThanOrEqual(100);
      expect(world.told("finished").length).toBe(3);
      await world.platform.run(worker.stop());
    }
  });

  test("with nothing left to do a verdict leaves at once", async () => {
    for (const lacks of [[], ["exchange"]] as const) {
      const world = new World({ lacks });
      await world.add(1);
      const worker = await world.start(world.takes(10));
      await world.until(() => world.told("settled").length === 1, 1_000);
      expect(world.eventTimes[world.events.findIndex((event) => event.type === "settled")]).toBe(10);
      await world.platform.run(worker.stop());
    }
  });

  test("a claim that hangs does not keep verdicts back", async () => {
    const world = new World({ roundTripMs: 100 });
    await world.add(32);
    let ahead: Asked | undefined;
    world.broker.fault = (asked) => {
      if (ahead !== undefined || asked.claim === undefined || asked.nth === 0) return undefined;
      ahead = asked;
      return "hangs";
    };
    const worker = await world.start(world.takes(20), { prefetch: 16 });
    await world.until(() => world.told("finished").length === 16);
    // Sent while jobs ran, and never answered.
    expect(ahead?.settle.length).toBeLessThan(16);
    const late = world.platform.now();
    await world.until(() => world.broker.count("settle", "exchange") > 2);
    expect(world.platform.now() - late).toBeLessThanOrEqual(250);
    expect(world.broker.log.at(-1)?.settle.length).toBeGreaterThan(0);
    expect(world.broker.log.at(-1)?.claim).toBeUndefined();
    await world.untilEmpty();
    await world.platform.run(worker.stop());
  });
});

describe("several queues of one worker", () => {
  test("each has its own claims and slots", async () => {
    const world = new World();
    await world.add(20, {}, "a");
    await world.add(20, {}, "b");
    const worker = await world.startDefinition(
      defineWorker({
        queues: [
          queue("a").handle(world.takes(10), { concurrency: 2 }),
          queue("b").handle(world.takes(10), { concurrency: 1, prefetch: 1 }),
        ],
      }),
    );
    await world.untilEmpty("a");
    await world.untilEmpty("b");
    expect(worker.stats().map((one) => [one.queue, one.acked])).toEqual([
      ["a", 20],
      ["b", 20],
    ]);
    await world.platform.run(worker.stop());
  });
});

describe("an engine inside the process", () => {
  for (const clockStopsDuringCpu of [true, false]) {
    test(`leaves the event loop its turn, however much there is to do; the clock ${clockStopsDuringCpu ? "stands" : "runs"}`, async () => {
      const world = new World({ simulated: { clockStopsDuringCpu } });
      await world.add(10_000);
      let turns = 0;
      const tick = () => {
        turns += 1;
        if (turns < 1_000) setImmediate(tick);
      };
      setImmediate(tick);
      // 10,000 jobs compute for a second altogether.
      const worker = await world.start(() => world.platform.spend(clockStopsDuringCpu ? 0 : 0.1), {
        prefetch: 16,
      });
      await world.untilEmpty();
      // 625 batches of 16: no more than 64 in one turn, or 20 ms.
      expect(turns).toBeGreaterThanOrEqual(clockStopsDuringCpu ? 9 : 40);
      await world.platform.run(worker.stop());
    });
  }
});
