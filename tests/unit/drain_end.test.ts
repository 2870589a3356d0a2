/** The end of a drain's time: what it interrupts is settled within it, and what it cannot carry is not begun. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { drain } from "../../src/drain.ts";
import type { StandardSchema } from "../../src/mod.ts";
import { queue } from "../../src/queue.ts";
import { defineWorker } from "../../src/worker.ts";
import { define, drained, type Handle } from "../support/draining.ts";
import { heeds } from "../support/handling.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

const LINKS = [[], ["exchange"]] as const;

/** The first so many jobs take a millisecond, the others as long as they are let. */
function heedsAfter(world: World, quick: number): Handle {
  let nth = 0;
  return (job) => {
    nth += 1;
    return nth <= quick ? world.platform.sleep(1) : heeds(job);
  };
}

/** The requests that settled something. */
const settling = (world: World) => world.broker.log.filter(({ settle }) => settle.length > 0);

/** Gives requests that only settle so long a way. */
function slowSettling(world: World, ms: number): void {
  world.broker.fault = ({ settle, claim }) =>
    settle.length > 0 && claim === undefined ? { delayMs: ms / 2, replyMs: ms / 2 } : undefined;
}

describe("the end of a drain's time", () => {
  test("settles all that it interrupts and gives back in one round trip", async () => {
    for (const lacks of LINKS) {
      const world = new World({ roundTripMs: 80, lacks });
      await world.add(60);
      const report = await drained(world, define(heedsAfter(world, 20), { concurrency: 4, prefetch: 8 }), {
        budget: { maxMs: 1_500 },
      });
      expect(report).toMatchObject({ stopped: "time", acked: 20, lost: 0, abandoned: 0 });
      // Those that ran, and those that waited beside them.
      expect(report.released).toBeGreaterThan(4);
      expect(settling(world).at(-1)?.settle.length).toBe(report.released);
      expect((await world.peek("ready")).every(({ attempts }) => attempts === 0)).toBe(true);
    }
  });

  test("so it has room for them though a round trip then takes longer than any before", async () => {
    for (const lacks of LINKS) {
      const world = new World({ roundTripMs: 80, lacks });
      await world.add(8);
      slowSettling(world, 140);
      const report = await drained(world, define(heeds, { concurrency: 4 }), { budget: { maxMs: 1_000 } });
      expect(report).toMatchObject({ stopped: "time", jobs: 4, released: 4, lost: 0 });
      expect(settling(world).length).toBe(1);
    }
  });

  test("has room for two where one is under way already", async () => {
    for (const lacks of LINKS) {
      const world = new World({ roundTripMs: 80, lacks });
      await world.add(2);
      const budget = { maxMs: 1_000 };
      // The one ends just before the end, and its verdict leaves alone; the other ends with it.
      const handler: Handle = (job) =>
        job.id === "job0" ? world.platform.sleep(budget.maxMs - 240 - 160 - 1) : heeds(job);
      const report = await drained(world, define(handler, { concurrency: 2, settleWithinMs: 0 }), { budget });
      expect(report).toMatchObject({ stopped: "time", acked: 1, released: 1, lost: 0 });
      expect(settling(world).length).toBe(2);
    }
  });

  test("comes as much sooner as round trips turn out to take, not as opening took", async () => {
    for (const lacks of LINKS) {
      const world = new World({ roundTripMs: 5, lacks });
      await world.add(4);
      world.broker.fault = ({ verb }) => (verb === "open" ? undefined : { delayMs: 50, replyMs: 50 });
      const report = await drained(world, define(heeds, { concurrency: 4 }), { budget: { maxMs: 900 } });
      expect(report).toMatchObject({ stopped: "time", released: 4, lost: 0 });
    }
  });

  test("nor is time kept back for ever because opening took long", async () => {
    const world = new World();
    await world.add(1_000);
    world.broker.fault = ({ verb }) => (verb === "open" ? { delayMs: 200 } : undefined);
    const report = await drained(world, define(world.takes(10)), { budget: { maxMs: 1_000 } });
    // A tenth of the whole is kept back, and what it took to open is gone.
    expect(report.acked).toBeGreaterThanOrEqual(60);
    expect(report.lost).toBe(0);
  });

  test("is what jobs see as their deadline, on a slow link too", async () => {
    const world = new World({ roundTripMs: 200 });
    await world.add(1);
    let deadline = 0;
    await drained(
      world,
      define((job) => {
        deadline = job.deadline;
      }),
      { budget: { maxMs: 2_000 } },
    );
    expect(deadline).toBe(1_800_000_000_000 + 2_000 - 600);
  });

  test("lets those go at once that no renewal keeps, though others still run", async () => {
    const world = new World({ roundTripMs: 20 });
    await world.add(2);
    const ignores: Handle = (job) => (job.id === "job0" ? new Promise(() => {}) : heeds(job));
    const report = await drained(world, define(ignores, { concurrency: 2, renew: false }), {
      budget: { maxMs: 10_000 },
    });
    expect(report).toMatchObject({ released: 1, retried: 1, abandoned: 1, lost: 0 });
    expect(settling(world).map(({ settle }) => settle.map(({ verdict }) => verdict.kind))).toEqual([
      ["release"],
      ["retry"],
    ]);
  });

  test("whatever the link takes, within half as much again: nothing is lost, and nothing lasts longer", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          seed: fc.integer({ min: 1, max: 1_000_000 }),
          roundTripMs: fc.integer({ min: 0, max: 120 }),
          concurrency: fc.integer({ min: 1, max: 5 }),
          prefetch: fc.oneof(fc.constant("auto" as const), fc.integer({ min: 1, max: 20 })),
          jobMs: fc.integer({ min: 0, max: 200 }),
          exchange: fc.boolean(),
          maxMs: fc.integer({ min: 1, max: 1_500 }),
        }),
        async ({ seed, roundTripMs, concurrency, prefetch, jobMs, exchange, maxMs }) => {
          const world = new World({ simulated: { seed }, lacks: exchange ? [] : ["exchange"] });
          await world.add(200);
          world.broker.fault = () => {
            const ms = roundTripMs * (1 + world.platform.random() / 2);
            return { delayMs: ms / 2, replyMs: ms / 2 };
          };
          const handler: Handle = (job) =>
            Promise.race([heeds(job), world.platform.sleep(world.platform.random() * jobMs)]);
          // One whose time is over before it is open says so.
          if (maxMs <= roundTripMs * 1.5) return;
          const report = await drained(world, define(handler, { concurrency, prefetch }), {
            budget: { maxMs },
          });
          expect(report).toMatchObject({ lost: 0, retried: 0, abandoned: 0 });
          expect(await world.sizes()).toMatchObject({ held: 0, ready: 200 - report.acked });
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe("a budget of time that carries no job", () => {
  test("claims nothing, and says so", async () => {
    for (const lacks of LINKS) {
      for (const [roundTripMs, maxMs] of [
        [0, 1],
        [0, 10],
        [80, 320],
        [80, 100],
      ] as const) {
        const world = new World({ roundTripMs, lacks });
        await world.add(3);
        const report = await drained(world, define(heeds), { budget: { maxMs } });
        expect(report).toMatchObject({ jobs: 0, released: 0, lost: 0, stopped: "time" });
        expect(world.broker.claims).toEqual([]);
      }
    }
  });

  test("just above it a job is done", async () => {
    for (const lacks of LINKS) {
      for (const [roundTripMs, maxMs] of [
        [0, 12],
        [80, 330],
      ] as const) {
        const world = new World({ roundTripMs, lacks });
        await world.add(3);
        const report = await drained(
          world,
          define(() => {}, { prefetch: 1 }),
          { budget: { maxMs } },
        );
        expect(report.acked).toBeGreaterThan(0);
        expect(report).toMatchObject({ lost: 0 });
      }
    }
  });

  test("an engine inside the process is not judged by all that opening it took", async () => {
    const world = new World({ counts: false });
    await world.add(3);
    world.broker.fault = ({ verb }) => (verb === "open" ? { delayMs: 300 } : undefined);
    const report = await drained(
      world,
      define(() => {}),
      { budget: { maxMs: 1_000 } },
    );
    expect(report).toMatchObject({ acked: 3, stopped: "empty" });
  });
});

describe("the jobs of a report", () => {
  const checking = (world: World, valid: boolean): StandardSchema<unknown, unknown> => ({
    "~standard": {
      version: 1,
      vendor: "test",
      validate: async (value) => {
        await world.platform.sleep(valid ? 10_000 : 1);
        return valid ? { value } : { issues: [{ message: "no" }] };
      },
    },
  });

  test("are those whose handler was called: not one interrupted while its body was checked, nor an invalid one", async () => {
    for (const [valid, ends] of [
      [true, "released"],
      [false, "dead"],
    ] as const) {
      const world = new World();
      await world.add(1);
      let called = 0;
      const definition = defineWorker({
        queues: [
          queue("work", { body: checking(world, valid) }).handle(() => {
            called += 1;
          }),
        ],
      });
      const report = await drained(world, definition, { budget: { maxMs: 1_000 } });
      expect(report).toMatchObject({ jobs: 0, [ends]: 1 });
      expect(called).toBe(0);
      expect(world.told("started")).toEqual([]);
    }
  });
});

describe("a handler that computes beyond the run's end", () => {
  test("has its verdict taken all the same, and what waited behind it goes back uncharged", async () => {
    for (const lacks of LINKS) {
      for (const when of ["at once", "later", "once told to stop", "in its signal's listener"]) {
        const world = new World({ roundTripMs: 80, lacks });
        await world.add(20);
        const { broker, platform, on } = world;
        let nth = 0;
        const handler: Handle = async (job) => {
          nth += 1;
          if (nth < 4) return;
          if (when === "later") await platform.sleep(1);
          if (when === "once told to stop") await Promise.resolve(heeds(job)).catch(() => {});
          if (when !== "in its signal's listener") platform.spend(2_000);
          else
            await new Promise<void>((resolve) =>
              job.signal.addEventListener("abort", () => resolve(platform.spend(2_000))),
            );
        };
        const definition = define(handler, { prefetch: 8 });
        const report = await platform.run(
          drain(definition, { broker, platform, on, budget: { maxMs: 1_000 } }),
        );
        expect(report).toMatchObject({ stopped: "time", acked: 4, retried: 0, abandoned: 0, lost: 0 });
        expect(report.released).toBeGreaterThan(0);
        expect(await world.sizes()).toMatchObject({ held: 0, ready: 16 });
        expect((await world.peek("ready")).every(({ attempts }) => attempts === 0)).toBe(true);
      }
    }
  });

  test("is not waited for longer than a request has been taking", async () => {
    for (const lacks of LINKS) {
      const world = new World({ roundTripMs: 80, lacks });
      await world.add(1);
      const { broker, platform, on } = world;
      const handler: Handle = async () => {
        await platform.sleep(1);
        platform.spend(2_000);
        broker.fault = () => ({ delayMs: 0, replyMs: 60_000 });
      };
      const from = platform.now();
      const run = drain(define(handler), { broker, platform, on, budget: { maxMs: 1_000 } });
      expect(await platform.run(run)).toMatchObject({ stopped: "time", lost: 1 });
      expect(platform.now() - from).toBeLessThan(2_000 + 80 * 6);
    }
  });
});
