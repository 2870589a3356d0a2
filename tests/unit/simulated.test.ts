import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { SimulatedPlatform } from "../../runtimes/simulated.ts";
import { noStrayRejections } from "../support/world.ts";

noStrayRejections();

describe("the simulated platform", () => {
  test("fires timers in the order of their times, then of their setting, and moves the clock there", async () => {
    const platform = new SimulatedPlatform();
    const fired: [string, number][] = [];
    for (const [name, ms] of [
      ["c", 30],
      ["a", 10],
      ["b1", 20],
      ["b2", 20],
    ] as const) {
      platform.setTimer(ms, () => fired.push([name, platform.now()]));
    }
    platform.setTimer(15, () => fired.push(["never", 0]))();
    await platform.pass(25);
    expect(fired).toEqual([
      ["a", 10],
      ["b1", 20],
      ["b2", 20],
    ]);
    expect([platform.now(), platform.timers]).toEqual([25, 1]);
  });

  test("plays the same way for the same seed", () => {
    const ids = (seed: number) => {
      const platform = new SimulatedPlatform({ seed });
      return [platform.randomId(), platform.random(), platform.randomId()];
    };
    expect(ids(5)).toEqual(ids(5));
    expect(ids(5)).not.toEqual(ids(6));
  });

  test("says so when nothing can happen any more, or not in time", async () => {
    const platform = new SimulatedPlatform();
    await expect(platform.run(new Promise(() => {}))).rejects.toThrow("stands still");
    platform.setTimer(1_000, () => {});
    await expect(platform.run(new Promise(() => {}), 500)).rejects.toThrow("went on for 500 ms");
  });

  test("says so when the world goes round in a circle without time passing, whoever catches the error", async () => {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "../support/circling_worlds.ts")], {
      stdio: ["ignore", "pipe", "inherit"],
      timeout: 50_000,
      killSignal: "SIGKILL",
    });
    const lines = (await new Response(child.stdout).text()).trim().split("\n");
    expect(lines).toEqual(["circle", "circle", "circle 1"]);
    expect(await child.exited).toBe(0);
  });

  test("late timers fire as soon as they can", async () => {
    const platform = new SimulatedPlatform();
    let at = 0;
    platform.setTimer(10, () => {
      at = platform.now();
    });
    platform.spend(50);
    await platform.pass(0);
    expect(at).toBe(50);
  });
});
