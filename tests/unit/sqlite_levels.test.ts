import { expect, test } from "bun:test";
import fc from "fast-check";
import { type PassedOver, shareOut, shareWithin, type Waiting } from "../../adapters/sqlite/levels.ts";

const NEVER: PassedOver = { normal: 0, low: 0 };

test("one level alone is taken in full, and nobody is passed over", () => {
  expect(shareOut(16, [20, 0, 0], { normal: 3, low: 5 })).toEqual({ take: [16, 0, 0], passed: NEVER });
  expect(shareOut(16, [0, 5, 0], { normal: 3, low: 5 })).toEqual({ take: [0, 5, 0], passed: NEVER });
  expect(shareOut(16, [0, 0, 7], NEVER)).toEqual({ take: [0, 0, 7], passed: NEVER });
});

test("with nothing there the counts stay", () => {
  expect(shareOut(16, [0, 0, 0], { normal: 3, low: 5 })).toEqual({
    take: [0, 0, 0],
    passed: { normal: 3, low: 5 },
  });
});

test("a waiting level gives the eighth, counted over claims", () => {
  const first = shareOut(5, [99, 0, 99], NEVER);
  expect(first).toEqual({ take: [5, 0, 0], passed: { normal: 0, low: 5 } });
  const second = shareOut(5, [99, 0, 99], first.passed);
  expect(second).toEqual({ take: [4, 0, 1], passed: { normal: 0, low: 2 } });
});

test("of two waiting levels normal has its turn first, low right after", () => {
  expect(shareOut(9, [99, 99, 99], NEVER).take).toEqual([7, 1, 1]);
  expect(shareOut(8, [99, 99, 99], NEVER)).toEqual({ take: [7, 1, 0], passed: { normal: 0, low: 8 } });
});

test("no waiting level is ever passed over more than the rule allows, and none goes idle", () => {
  const count = fc.nat({ max: 30 });
  fc.assert(
    fc.property(
      fc.array(fc.record({ max: fc.integer({ min: 1, max: 20 }), add: fc.tuple(count, count, count) })),
      (claims) => {
        const there: [number, number, number] = [0, 0, 0];
        let passed = NEVER;
        for (const { max, add } of claims) {
          add.forEach((more, level) => {
            there[level] = (there[level] ?? 0) + more;
          });
          const total = there[0] + there[1] + there[2];
          const share = shareOut(max, there, passed);
          share.take.forEach((taken, level) => {
            expect(taken).toBeLessThanOrEqual(there[level] ?? 0);
            there[level] = (there[level] ?? 0) - taken;
          });
          expect(share.take[0] + share.take[1] + share.take[2]).toBe(Math.min(max, total));
          passed = share.passed;
          if (there[1] > 0) expect(passed.normal).toBeLessThanOrEqual(7);
          if (there[2] > 0) expect(passed.low).toBeLessThanOrEqual(8);
        }
      },
    ),
  );
});

test("a share within so many bytes is the longest beginning of the whole one, and never nothing", () => {
  const level = fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 20 });
  const passed = fc.record({ normal: fc.nat({ max: 9 }), low: fc.nat({ max: 9 }) });
  const property = fc.property(
    fc.integer({ min: 1, max: 30 }),
    fc.nat({ max: 60 }),
    fc.tuple(level, level, level),
    passed,
    (max, mostBytes, waiting: Waiting, before) => {
      const shareOf = (count: number) =>
        shareOut(count, [waiting[0].length, waiting[1].length, waiting[2].length], before);
      const bytes = (count: number) =>
        waiting.flatMap((one, n) => one.slice(0, shareOf(count).take[n])).reduce((sum, one) => sum + one, 0);
      let longest = max;
      while (longest > 1 && bytes(longest) > mostBytes) longest -= 1;
      expect(shareWithin(max, mostBytes, waiting, before)).toEqual(shareOf(longest));
    },
  );
  fc.assert(property);
});
