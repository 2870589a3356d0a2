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
  test("a few wait for the request behind the claim that is on its way", async () => {
    const world = new World({ roundTripMs: 2, waits: true, lacks: ["exchange"] });
    await world.add(320);
    const sentAt: Record<"claim" | "settle", number[]> = { claim: [], settle: [] };
    world.broker.fault = ({ verb }) => {
      if (verb === "claim" || verb === "settle") sentAt[verb].push(world.platform.now());
      return undefined;
    };
    const worker = await world.start(() => {}, { prefetch: 16 });
    await world.until(() => world.told("settled").length === 320);
    await world.platform.run(worker.stop());
    // All but the last leave at the very time of a claim.
    expect(sentAt.settle.filter((at) => !sentAt.claim.includes(at)).length).toBeLessThanOrEqual(1);
  });

  test("but only some milliseconds: over a slow link they leave at once, nearly", async () => {
    const world = new World({ roundTripMs: 100, waits: true, lacks: ["exchange"] });
    await world.add(32);
    const worker = await world.start(() => {}, { prefetch: 16 });
    let finishedAt = 0;
    let settledAt = 0;
    world.broker.fault = ({ verb }) => {
      if (verb === "settle" && settledAt === 0) settledAt = world.platform.now();
      return undefined;
    };
    await world.until(() => {
      if (finishedAt === 0 && world.told("finished").length === 16) finishedAt = world.platform.now();
      return settledAt > 0;
    });
    expect(settledAt - finishedAt).toBeLessThanOrEqual(6);
    await world.until(() => world.told("settled").length === 32);
    await world.platform.run(worker.stop());
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
