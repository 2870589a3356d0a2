/** The checker itself: it notices brokers that break a promise, plays a seed the same way each time, and makes failing worlds smaller. */
import { describe, expect, test } from "bun:test";
import { generatePlan } from "./generate.ts";
import { PLANTED, twisted } from "./planted.ts";
import { shrink } from "./shrink.ts";
import { type Played, play } from "./world.ts";

const MOST_SEEDS = 400;

describe("a broker is caught that", () => {
  for (const { name, breaks, twist } of PLANTED) {
    test(name, async () => {
      let caught: string | undefined;
      for (let seed = 1; seed <= MOST_SEEDS && caught === undefined; seed += 1) {
        const one = twist();
        const { violation } = await play(generatePlan(seed), { tamper: (queue) => twisted(queue, one) });
        caught = violation?.promised;
      }
      expect(breaks as readonly (string | undefined)[]).toContain(caught);
    });
  }
});

test("a seed plays the same world each time, to the last line", async () => {
  for (let seed = 1; seed <= 40; seed += 1) {
    const lines: string[][] = [[], []];
    for (const own of lines) await play(generatePlan(seed), { trace: (line) => own.push(line) });
    expect(lines[0]).toEqual(lines[1] as string[]);
  }
});

test("no two seeds play the same world", async () => {
  const worlds = new Set<string>();
  for (let seed = 1; seed <= 200; seed += 1) worlds.add(JSON.stringify({ ...generatePlan(seed), seed: 0 }));
  expect(worlds.size).toBe(200);
});

test("a failing world is made smaller and still breaks the same promise", async () => {
  // A broker that takes every verdict for done: as plain a fault as there is.
  const planted = PLANTED.find(({ breaks }) => breaks.includes("lateFence"));
  const tamper = (queue: Parameters<typeof twisted>[0]) => twisted(queue, planted?.twist() ?? {});
  for (let seed = 1; seed <= MOST_SEEDS; seed += 1) {
    const plan = generatePlan(seed);
    const { violation } = await play(plan, { tamper });
    if (violation === undefined) continue;
    const small = await shrink(plan, violation.promised, (one) => play(one, { tamper }));
    expect((await play(small, { tamper })).violation?.promised).toBe(violation.promised);
    expect(small.jobs.length).toBeLessThanOrEqual(2);
    expect(small.jobs.length + small.faults.length + small.workers.length).toBeLessThan(
      plan.jobs.length + plan.faults.length + plan.workers.length,
    );
    return;
  }
  throw new Error("no seed met the planted fault");
});

test("in a few hundred worlds everything happens that worlds are made for", async () => {
  const sum = new Map<string, number>();
  const add = (name: string, count: number) => sum.set(name, (sum.get(name) ?? 0) + count);
  for (let seed = 1; seed <= 400; seed += 1) {
    const { tally, starts, violation }: Played = await play(generatePlan(seed));
    expect(violation).toBeUndefined();
    add("starts", starts);
    for (const [name, count] of Object.entries(tally)) add(name, count);
  }
  const rare = [...sum].filter(([, count]) => count < 10);
  expect(rare).toEqual([]);
  for (const name of ["ack", "retry", "dead", "release", "lost", "takenBack", "claimedAgain", "barred"]) {
    expect([...sum.keys()]).toContain(name);
  }
});
