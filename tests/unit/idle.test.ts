import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { nextLookMs } from "../../src/looks.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

const limits = { pollMinMs: 50, pollMaxMs: 5_000, safetyPollMs: 30_000 };

describe("the gap before the next look", () => {
  test("doubles from the least to the most, jittered down by a quarter at most", () => {
    const most = [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000];
    for (const [index, ms] of most.entries()) {
      expect(nextLookMs(index + 1, 0, limits, false, undefined)).toBe(ms * 0.75);
      expect(nextLookMs(index + 1, 1, limits, false, undefined)).toBe(ms);
    }
  });

  test("while watching it is the safety net's", () => {
    expect(nextLookMs(1, 1, limits, true, undefined)).toBe(30_000);
    expect(nextLookMs(50, 0, limits, true, undefined)).toBe(22_500);
  });

  test("is always above 0 and never beyond the limits, nor beyond what is due", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10_000 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.boolean(),
        fc.option(fc.integer({ min: -5, max: 100_000 }), { nil: undefined }),
        (empty, random, watching, due) => {
          const ms = nextLookMs(empty, random, limits, watching, due);
          expect(ms).toBeGreaterThan(0);
          expect(ms).toBeLessThanOrEqual(watching ? 30_000 : 5_000);
          if (due !== undefined) expect(ms).toBeLessThanOrEqual(Math.max(0, due) + 2);
        },
      ),
    );
  });
});

describe("an idle worker without a watch", () => {
  test("looks at gaps that grow to the most, with jitter", async () => {
    const world = new World({ lacks: ["wake"] });
    const worker = await world.start(() => {});
    await world.platform.pass(120_000);
    const gaps = world.told("idle").map((one) => one.nextLookMs);
    expect(gaps[0]).toBeLessThanOrEqual(50);
    const late = gaps.slice(8);
    expect(Math.min(...late)).toBeGreaterThanOrEqual(3_750);
    expect(Math.max(...late)).toBeLessThanOrEqual(5_000);
    expect(new Set(late).size).toBe(late.length);
    const claims = world.broker.claims;
    for (let i = 1; i < claims.length; i += 1) {
      expect((claims[i]?.at ?? 0) - (claims[i - 1]?.at ?? 0)).toBeCloseTo(gaps[i - 1] as number, 6);
    }
    await world.platform.run(worker.stop());
  });

  test("starts small again when something came", async () => {
    const world = new World({ lacks: ["wake"] });
    const worker = await world.start(() => {});
    await world.platform.pass(60_000);
    await world.add(1);
    await world.until(() => world.told("finished").length === 1, 6_000);
    const { length } = world.told("idle");
    await world.until(() => world.told("idle").length > length);
    expect(world.told("idle").at(-1)?.nextLookMs).toBeLessThanOrEqual(100);
    await world.platform.run(worker.stop());
  });

  test("starts a delayed job within a few milliseconds of its time, though its gaps are longer", async () => {
    for (const delayMs of [100, 7_321, 25_000]) {
      const world = new World({ lacks: ["wake"] });
      await world.add(1, { delayMs });
      const worker = await world.start(() => {});
      await world.until(() => world.told("started").length === 1);
      const late = (world.eventTimes[world.events.findIndex((one) => one.type === "started")] ?? 0) - delayMs;
      expect(late).toBeGreaterThanOrEqual(0);
      expect(late).toBeLessThanOrEqual(5);
      await world.platform.run(worker.stop());
    }
  });
});

describe("an idle worker with a watch", () => {
  test("asks at most three times a minute", async () => {
    const world = new World();
    const worker = await world.start(() => {});
    await world.platform.pass(1_000);
    const before = world.broker.count();
    await world.platform.pass(600_000);
    expect((world.broker.count() - before) / 10).toBeLessThanOrEqual(3);
    expect(world.broker.count() - before).toBeGreaterThanOrEqual(10);
    await world.platform.run(worker.stop());
  });

  test("that waits at the engine, too, asks seldom", async () => {
    const world = new World({ waits: true });
    const worker = await world.start(() => {}, { leaseMs: 60_000 });
    await world.platform.pass(120_000);
    expect(world.broker.count("claim")).toBeLessThanOrEqual(7);
    await world.platform.run(worker.stop());
  });

  test("is woken at once by a new job", async () => {
    const world = new World();
    const worker = await world.start(() => {});
    await world.platform.pass(12_345);
    await world.add(1);
    await world.platform.pass(0);
    expect(world.told("started").length).toBe(1);
    expect(world.told("woken").length).toBe(1);
    await world.platform.run(worker.stop());
  });

  test("starts a delayed job within a few milliseconds of its time, enqueued before it slept or while it does", async () => {
    for (const meanwhile of [false, true]) {
      const world = new World();
      if (!meanwhile) await world.add(1, { delayMs: 8_000 });
      const worker = await world.start(() => {});
      await world.platform.pass(1_000);
      const from = meanwhile ? world.platform.now() : 0;
      if (meanwhile) await world.add(1, { delayMs: 8_000 });
      await world.until(() => world.told("started").length === 1);
      const at = world.eventTimes[world.events.findIndex((one) => one.type === "started")] ?? 0;
      expect(at - from).toBeGreaterThanOrEqual(8_000);
      expect(at - from).toBeLessThanOrEqual(8_005);
      await world.platform.run(worker.stop());
    }
  });

  for (const blind of [false, true]) {
    test(`a retry comes at its time though nothing else wakes it${blind ? ", nor the engine tells of it" : ""}`, async () => {
      const world = new World({ blind });
      await world.add(1);
      const worker = await world.start(
        () => {
          throw new Error("again");
        },
        { maxAttempts: 4, backoff: () => 4_000 },
      );
      await world.until(() => world.told("started").length === 4);
      const at = world.events.flatMap((one, index) =>
        one.type === "started" ? [world.eventTimes[index] ?? 0] : [],
      );
      for (let i = 1; i < 4; i += 1) {
        expect((at[i] ?? 0) - (at[i - 1] ?? 0)).toBeGreaterThanOrEqual(4_000);
        expect((at[i] ?? 0) - (at[i - 1] ?? 0)).toBeLessThanOrEqual(4_005);
      }
      await world.platform.run(worker.stop());
    });
  }

  test("news during a claim that finds nothing is not lost", async () => {
    const world = new World({ roundTripMs: 100 });
    const worker = await world.start(() => {});
    await world.platform.pass(5_000);
    // The look is answered "nothing" by the engine, and the job comes while that answer is on its way.
    await world.until(() => {
      const last = world.broker.claims.at(-1);
      return last !== undefined && last.answeredAt === undefined && world.platform.now() - last.at >= 60;
    });
    await world.add(1);
    const from = world.platform.now();
    await world.until(() => world.told("started").length === 1);
    expect(world.platform.now() - from).toBeLessThanOrEqual(200);
    await world.platform.run(worker.stop());
  });

  test("a job that came between the first look and the watch is found", async () => {
    const world = new World();
    world.broker.fault = (asked) => (asked.verb === "watch" ? { delayMs: 300, replyMs: 300 } : undefined);
    const starting = world.start(() => {});
    await Promise.resolve();
    const worker = await starting;
    await world.add(1);
    await world.until(() => world.told("started").length === 1, 1_000);
    await world.platform.run(worker.stop());
  });

  test("a job that came before the watch is found, though the look that missed it is answered after the watch began", async () => {
    const world = new World();
    world.broker.fault = ({ verb }) => {
      if (verb === "watch") return { delayMs: 50, replyMs: 10 };
      return verb === "exchange" ? { delayMs: 0, replyMs: 200 } : undefined;
    };
    world.platform.setTimer(20, () => void world.add(1));
    const worker = await world.start(() => {});
    await world.until(() => world.told("started").length === 1, 1_000);
    await world.platform.run(worker.stop());
  });

  test("one that fails to begin is begun again while the gaps go on", async () => {
    const world = new World();
    world.broker.fault = (asked) => (asked.verb === "watch" && asked.nth < 4 ? "lost" : undefined);
    const worker = await world.start(() => {});
    expect(world.told("brokerError").map((one) => one.verb)).toEqual(["watch"]);
    await world.add(1);
    await world.until(() => world.told("started").length === 1, 200);
    await world.until(() => world.broker.breakWatches.size === 1, 60_000);
    expect(world.broker.count("watch")).toBe(5);
    const pauses = world.told("brokerError").map((one) => one.retryInMs ?? Number.NaN);
    for (const pause of pauses) expect(pause).toBeGreaterThanOrEqual(100);
    expect(new Set(pauses).size).toBe(4);
    await world.platform.run(worker.stop());
  });

  test("one that breaks is begun again, and what came meanwhile is found", async () => {
    const world = new World();
    const worker = await world.start(() => {});
    await world.platform.pass(40_000);
    for (const breaking of [...world.broker.breakWatches]) breaking(new Error("cut"));
    await world.add(1);
    await world.until(() => world.told("started").length === 1, 200);
    await world.until(() => world.broker.breakWatches.size === 1, 60_000);
    await world.add(1);
    await world.platform.pass(0);
    expect(world.told("started").length).toBe(2);
    await world.platform.run(worker.stop());
  });

  test("one that ends twice, or before it began, is begun again once", async () => {
    const world = new World();
    const worker = await world.start(() => {});
    const [breaking] = [...world.broker.breakWatches];
    breaking?.(new Error("cut"));
    breaking?.(new Error("cut again"));
    expect(world.told("brokerError").length).toBe(1);
    await world.platform.pass(60_000);
    expect(world.broker.breakWatches.size).toBe(1);
    expect(world.broker.count("watch")).toBe(2);
    await world.platform.run(worker.stop());
  });
});

describe("a busy worker", () => {
  test("does not look for more while its slots are full", async () => {
    const world = new World({ lacks: ["wake"] });
    await world.add(1);
    const worker = await world.start(world.takes(60_000), { prefetch: 16, leaseMs: 600_000 });
    await world.platform.pass(50_000);
    expect(world.broker.claims.length).toBeLessThanOrEqual(2);
    await world.untilEmpty();
    await world.platform.run(worker.stop());
  });

  test("with a free slot hears of news at once", async () => {
    const world = new World();
    await world.add(1);
    const worker = await world.start(world.takes(60_000), { concurrency: 2 });
    await world.platform.pass(5_000);
    await world.add(1);
    await world.platform.pass(0);
    expect(world.told("started").length).toBe(2);
    await world.untilEmpty();
    await world.platform.run(worker.stop());
  });
});
