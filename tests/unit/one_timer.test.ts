import { expect, test } from "bun:test";
import fc from "fast-check";
import { SimulatedPlatform } from "../../runtimes/simulated.ts";
import { OneTimer } from "../../src/one_timer.ts";

test("only the last setting counts, and it fires once, at its time", async () => {
  const step = fc.record({
    inMs: fc.oneof(fc.integer({ min: 0, max: 40 }), fc.constant(Number.POSITIVE_INFINITY)),
    passMs: fc.nat({ max: 30 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const platform = new SimulatedPlatform();
      const fired: number[] = [];
      const timer = new OneTimer(platform, () => fired.push(platform.now()));
      const expected: number[] = [];
      let at = Number.POSITIVE_INFINITY;
      const passed = () => {
        if (at > platform.now()) return;
        expected.push(at);
        at = Number.POSITIVE_INFINITY;
      };
      for (const { inMs, passMs } of steps) {
        at = platform.now() + inMs;
        timer.set(at);
        await platform.pass(passMs);
        passed();
      }
      await platform.pass(100);
      passed();
      expect(fired).toEqual(expected);
      expect(platform.timers).toBe(0);
    }),
    { numRuns: 60 },
  );
});

test("set later again and again it sets few of the platform's", async () => {
  const platform = new SimulatedPlatform();
  let set = 0;
  const setTimer: SimulatedPlatform["setTimer"] = (ms, fn) => {
    set += 1;
    return SimulatedPlatform.prototype.setTimer.call(platform, ms, fn);
  };
  const counting = Object.assign(Object.create(platform), { setTimer, now: () => platform.now() });
  const timer = new OneTimer(counting, () => {});
  for (let n = 0; n < 500; n++) {
    timer.set(platform.now() + 50);
    await platform.pass(1);
    timer.set(Number.POSITIVE_INFINITY);
  }
  expect(set).toBeLessThanOrEqual(11);
});

test("stopped, it leaves no timer and fires nothing", async () => {
  const platform = new SimulatedPlatform();
  let fired = 0;
  const timer = new OneTimer(platform, () => {
    fired += 1;
  });
  timer.set(10);
  timer.stop();
  expect(platform.timers).toBe(0);
  await platform.pass(50);
  expect(fired).toBe(0);
});
