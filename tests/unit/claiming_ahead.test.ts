import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { expectNoOverlap, noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

describe("claiming ahead", () => {
  /** The share of the time from the first start to the last end in which a handler ran. */
  async function busyShare(options: { claimAhead: boolean; jobs: number; waits?: boolean }): Promise<number> {
    const world = new World({ roundTripMs: 10, waits: options.waits ?? false });
    await world.add(options.jobs);
    const spans: [number, number][] = [];
    const worker = await world.start(
      async () => {
        const from = world.platform.now();
        await world.platform.sleep(10);
        spans.push([from, world.platform.now()]);
      },
      { claimAhead: options.claimAhead },
    );
    await world.untilEmpty();
    await world.platform.run(worker.stop());
    expectNoOverlap(world.broker.claims);
    // The first 40 show the rule at work: small claims that hide nothing.
    const steady = spans.slice(40);
    const busy = steady.reduce((sum, [from, to]) => sum + to - from, 0);
    return busy / ((steady.at(-1)?.[1] ?? 0) - (steady[0]?.[0] ?? 0));
  }

  test("a link of 10 ms does not set the pace of jobs of 10 ms", async () => {
    expect(await busyShare({ claimAhead: true, jobs: 1_000 })).toBeGreaterThanOrEqual(0.97);
    expect(await busyShare({ claimAhead: false, jobs: 1_000 })).toBeLessThan(0.96);
  });

  test("nor where claims wait for work, and so tell nothing of the link", async () => {
    expect(await busyShare({ claimAhead: true, jobs: 1_000, waits: true })).toBeGreaterThanOrEqual(0.97);
    expect(await busyShare({ claimAhead: false, jobs: 1_000, waits: true })).toBeLessThan(0.96);
  });

  test("never after a short claim", async () => {
    const world = new World({ roundTripMs: 10, lacks: ["wake"] });
    await world.add(16 + 5);
    const worker = await world.start(world.takes(10), { prefetch: 16, pollMs: { min: 1, max: 1 } });
    await world.until(() => world.told("claimed").some((one) => one.got === 5));
    const claims = world.broker.claims.length;
    await world.until(() => world.told("finished").length === 20);
    expect(world.broker.claims.length).toBe(claims);
    await world.platform.run(worker.stop());
  });

  test("never for claims of a single job", async () => {
    const world = new World({ roundTripMs: 10 });
    await world.add(20);
    let ahead = 0;
    world.broker.fault = (asked) => {
      if (asked.claim !== undefined && world.told("started").length > world.told("finished").length)
        ahead += 1;
      return undefined;
    };
    const worker = await world.start(world.takes(10), { prefetch: 1 });
    await world.untilEmpty();
    expect(ahead).toBe(0);
    expect(world.told("started").length).toBe(20);
    await world.platform.run(worker.stop());
  });
});

describe("verdicts where claims wait at the engine", () => {
  /** All requests but the opening, and when each was sent. */
  async function requests(roundTripMs: number, jobs: number): Promise<{ verb: string; at: number }[]> {
    const world = new World({ roundTripMs, waits: true });
    await world.add(jobs);
    const sent: { verb: string; at: number }[] = [];
    world.broker.fault = ({ verb }) => {
      sent.push({ verb, at: world.platform.now() });
      return undefined;
    };
    const worker = await world.start(async () => {}, { prefetch: 16 });
    await world.until(() => world.told("settled").length === jobs);
    await world.platform.run(worker.stop());
    return sent.slice(1);
  }

  test("of a few jobs they wait for the request behind the claim that is on its way", async () => {
    const sent = await requests(2, 160);
    const alone = sent.filter(({ verb, at }, index) => {
      const next = sent[index + 1];
      return verb === "settle" && !(next?.verb === "claim" && next.at === at);
    });
    // The last ones, behind which nothing came.
    expect(alone).toHaveLength(1);
  });

  test("but some milliseconds at most, however long that claim takes", async () => {
    const sent = await requests(100, 64);
    const alone = sent.filter(({ verb, at }) => verb === "settle" && at % 100 !== 0);
    expect(alone.length).toBeGreaterThan(0);
    for (const { at } of alone) expect(at % 100).toBeLessThanOrEqual(5);
  });
});

describe("two claims of a queue never overlap", () => {
  test("whatever the link, the slots and the job times", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          seed: fc.integer({ min: 1, max: 1_000_000 }),
          roundTripMs: fc.integer({ min: 0, max: 40 }),
          concurrency: fc.integer({ min: 1, max: 6 }),
          prefetch: fc.oneof(fc.constant("auto" as const), fc.integer({ min: 1, max: 20 })),
          jobMs: fc.integer({ min: 0, max: 60 }),
          exchange: fc.boolean(),
          failures: fc.integer({ min: 0, max: 30 }),
        }),
        async ({ seed, roundTripMs, concurrency, prefetch, jobMs, exchange, failures }) => {
          const world = new World({ roundTripMs, lacks: exchange ? [] : ["exchange"], simulated: { seed } });
          await world.add(60);
          world.broker.fault = () => {
            const roll = world.platform.random() * 100;
            if (roll >= failures) return undefined;
            return roll < failures / 2 ? "lost" : "replyLost";
          };
          const ran: string[] = [];
          const worker = await world
            .start(world.takes(jobMs, ran), { concurrency, prefetch })
            .catch(() => undefined);
          if (worker === undefined) return;
          await world.untilEmpty();
          expectNoOverlap(world.broker.claims);
          expect(new Set(ran).size).toBe(60);
          await world.platform.run(worker.stop());
        },
      ),
      { numRuns: 40 },
    );
  });
});
