import { expect, test } from "bun:test";
import fc from "fast-check";
import { SimulatedPlatform } from "../../runtimes/simulated.ts";
import { SharedTimer } from "../../src/shared_timer.ts";

test("each fires once, at its own time, unless it was ended", async () => {
  const plan = fc.record({ ms: fc.integer({ min: 0, max: 500 }), endAfterMs: fc.nat({ max: 600 }) });
  await fc.assert(
    fc.asyncProperty(fc.array(plan, { maxLength: 20 }), fc.nat({ max: 50 }), async (plans, gapMs) => {
      const platform = new SimulatedPlatform();
      const timer = new SharedTimer(platform);
      const fired: [at: number, index: number][] = [];
      const expected: [at: number, index: number][] = [];
      for (const [index, { ms, endAfterMs }] of plans.entries()) {
        const at = platform.now() + ms;
        const cancel = timer.setTimer(ms, () => fired.push([platform.now(), index]));
        platform.setTimer(endAfterMs + 0.5, cancel);
        if (endAfterMs >= ms) expected.push([at, index]);
        await platform.pass(gapMs);
      }
      await platform.pass(2_000);
      const byTime = (a: [number, number], b: [number, number]) => a[0] - b[0] || a[1] - b[1];
      expect(fired.sort(byTime)).toEqual(expected.sort(byTime));
      expect(platform.timers).toBe(0);
    }),
    { numRuns: 50 },
  );
});

test("requests that come and go set one timer of the platform's, not one each", async () => {
  const platform = new SimulatedPlatform();
  let set = 0;
  const timer = new SharedTimer({
    now: () => platform.now(),
    setTimer: (ms, fn) => {
      set += 1;
      return platform.setTimer(ms, fn);
    },
  });
  for (let n = 0; n < 1_000; n++) {
    const cancel = timer.setTimer(5_000, () => {});
    await platform.pass(1);
    cancel();
  }
  expect(set).toBe(1);
});

test("a platform's timer that is early fires nothing early", async () => {
  const platform = new SimulatedPlatform();
  const timer = new SharedTimer({
    now: () => platform.now(),
    setTimer: (ms, fn) => platform.setTimer(ms / 2, fn),
  });
  let at: number | undefined;
  timer.setTimer(100, () => {
    at = platform.now();
  });
  await platform.pass(200);
  expect(at).toBeCloseTo(100, 2);
});

test("one that fires may end another that is due, and set a new one", async () => {
  const platform = new SimulatedPlatform();
  const timer = new SharedTimer(platform);
  const fired: string[] = [];
  let cancel = () => {};
  timer.setTimer(10, () => {
    fired.push("first");
    cancel();
    timer.setTimer(5, () => fired.push(`third at ${platform.now()}`));
  });
  cancel = timer.setTimer(10, () => fired.push("second"));
  await platform.pass(100);
  expect(fired).toEqual(["first", "third at 15"]);
});

test("closed, it fires nothing and leaves no timer", async () => {
  const platform = new SimulatedPlatform();
  const timer = new SharedTimer(platform);
  let fired = 0;
  timer.setTimer(10, () => {
    fired += 1;
  });
  timer.close();
  timer.close();
  expect(platform.timers).toBe(0);
  timer.setTimer(10, () => {
    fired += 1;
  });
  await platform.pass(100);
  expect(fired).toBe(0);
});
