/** What a bounded run learns of a queue and leaves for the next one. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { fromMemo, toMemo } from "../../src/learned.ts";
import { define, drained } from "../support/draining.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

describe("the memo", () => {
  test("brings back what was learned, to a thousandth, and fits a memo", () => {
    fc.assert(
      fc.property(
        fc.record({
          averageMs: fc.double({ min: 0, max: 1e9, noNaN: true }),
          prefetch: fc.integer({ min: 1, max: 100_000 }),
          requestsPerJob: fc.double({ min: 0, max: 1e6, noNaN: true }),
        }),
        (learned) => {
          const memo = toMemo(learned);
          expect(memo).toMatch(/^[\x20-\x7e]{1,256}$/);
          const back = fromMemo(memo);
          expect(back?.prefetch).toBe(learned.prefetch);
          expect(Math.abs((back?.averageMs ?? -1) - learned.averageMs)).toBeLessThan(0.001);
          expect(Math.abs((back?.requestsPerJob ?? -1) - learned.requestsPerJob)).toBeLessThan(0.001);
        },
      ),
    );
  });

  test("that is none of ours, or of a later form, tells nothing", () => {
    const others = [
      undefined,
      "",
      "hello",
      "2 averageMs=1 prefetch=1 requestsPerJob=1",
      "1 averageMs=-1 prefetch=1 requestsPerJob=1",
      "1 averageMs=1 prefetch=0 requestsPerJob=1",
      "1 averageMs=1e400 prefetch=1 requestsPerJob=1",
    ];
    for (const memo of others) expect(fromMemo(memo)).toBeUndefined();
  });
});

describe("a run starts from what the last one learned", () => {
  const asked = (world: World) => world.told("claimed").map((event) => event.asked);
  const withFetch = () => new World({ simulated: { fetch: async () => new Response("ok") } });
  const fetching = define(async (job) => {
    await job.fetch("https://receiver.example/");
  });

  test("its first claim is sized, at no request more than the run before made for it", async () => {
    const world = withFetch();
    await world.add(200);
    const first = await drained(world, fetching, { budget: { maxRequests: 50 } });
    expect(asked(world)[0]).toBe(1);
    const claimsOfFirst = asked(world).length;
    const second = await drained(world, fetching, { budget: { maxRequests: 50 } });
    expect(asked(world)[claimsOfFirst]).toBe(16);
    expect(second.jobs).toBeGreaterThan(first.jobs);
    // 50 requests: opening, four exchanges at the most, a settling, and what is kept back.
    expect(second.jobs).toBeGreaterThanOrEqual(42);
    expect(second.acked).toBe(second.jobs);
    expect(asked(world).length - claimsOfFirst).toBeLessThan(claimsOfFirst);
  });

  test("500 jobs of one request each under 50 requests a run: within 15 % of the least number of runs", async () => {
    const world = withFetch();
    await world.add(500);
    let runs = 0;
    let jobs = 0;
    for (let left: number | null = 500; left !== 0; runs += 1) {
      const report = await drained(world, fetching, { budget: { maxRequests: 50 } });
      expect(report.released + report.retried + report.lost).toBe(0);
      jobs += report.jobs;
      left = 500 - jobs;
      expect(runs).toBeLessThan(20);
    }
    expect(runs).toBeLessThanOrEqual(Math.floor(1.15 * Math.ceil(500 / (50 - 3))));
  });

  test("a long-lived worker grows from one as the rule says", async () => {
    const world = withFetch();
    await world.add(100);
    await drained(world, fetching, { budget: { maxJobs: 60 } });
    const before = asked(world).length;
    const worker = await world.start(async () => {});
    await world.platform.pass(1_000);
    expect(asked(world)[before]).toBe(1);
    await world.platform.run(worker.stop());
  });
});
