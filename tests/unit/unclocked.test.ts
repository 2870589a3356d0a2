import { describe, expect, test } from "bun:test";
import { SimulatedPlatform } from "../../runtimes/simulated.ts";
import { drain } from "../../src/drain.ts";
import { queue } from "../../src/queue.ts";
import { Unclocked } from "../../src/unclocked.ts";
import { defineWorker } from "../../src/worker.ts";
import { World } from "../support/world.ts";

describe("what jobs cost where the clock stands still", () => {
  function standing() {
    const platform = new SimulatedPlatform({ clockStopsDuringCpu: true });
    const ran: number[] = [];
    return { platform, ran, costs: new Unclocked(platform, (ms) => ran.push(ms)) };
  }

  test("is shared among those that ended before it moved", async () => {
    const { platform, ran, costs } = standing();
    for (let n = 0; n < 4; n += 1) {
      platform.spend(40);
      costs.ended(platform.now(), 0);
    }
    expect(ran).toEqual([]);
    let told = 0;
    expect(costs.known(() => told++)).toBe(false);
    expect(costs.known(() => told++)).toBe(false);
    await platform.pass(200);
    expect(ran).toEqual([40, 40, 40, 40]);
    expect(told).toBe(2);
    expect(costs.known(() => told++)).toBe(true);
  });

  test("is what the clock says when it moved in between", async () => {
    const { platform, ran, costs } = standing();
    costs.ended(platform.now(), 7);
    await platform.pass(30);
    costs.ended(platform.now(), 30);
    expect(ran).toEqual([7]);
    await platform.pass(1);
    expect(costs.known(() => {})).toBe(true);
    expect(ran).toEqual([7, 30]);
  });

  test("is nothing for jobs that took none", async () => {
    const { platform, ran, costs } = standing();
    costs.ended(platform.now(), 0);
    expect(costs.known(() => {})).toBe(false);
    await platform.pass(0);
    expect(ran).toEqual([0]);
  });

  test("is known at once where the clock goes on", () => {
    const platform = new SimulatedPlatform();
    const ran: number[] = [];
    const costs = new Unclocked(platform, (ms) => ran.push(ms));
    costs.ended(platform.now(), 12);
    expect(ran).toEqual([12]);
    expect(costs.known(() => {})).toBe(true);
  });
});

for (const clockStopsDuringCpu of [false, true]) {
  test(`jobs that compute for 40 ms are claimed by 6, the clock ${clockStopsDuringCpu ? "standing still" : "going on"}`, async () => {
    const world = new World({ simulated: { clockStopsDuringCpu } });
    await world.add(80);
    const definition = defineWorker({
      queues: [queue("work").handle(() => world.platform.spend(40))],
    });
    const { broker, platform, on } = world;
    const report = await platform.run(drain(definition, { broker, platform, on }));
    expect(report).toMatchObject({ jobs: 80, acked: 80, stopped: "empty" });
    const asked = world.told("claimed").map((event) => event.asked);
    expect(Math.max(...asked)).toBe(6);
    expect(asked.slice(-4)).toEqual([6, 6, 6, 6]);
  });
}

test("a budget of time holds for jobs that only compute, the clock standing still", async () => {
  const world = new World({ simulated: { clockStopsDuringCpu: true } });
  await world.add(200);
  const definition = defineWorker({ queues: [queue("work").handle(() => world.platform.spend(40))] });
  const { broker, platform, on } = world;
  const report = await platform.run(drain(definition, { broker, platform, on, budget: { maxMs: 2_000 } }));
  expect(report).toMatchObject({ stopped: "time", retried: 0, lost: 0 });
  expect(report.ms).toBeLessThanOrEqual(2_000);
  expect(report.jobs).toBeGreaterThan(35);
});
