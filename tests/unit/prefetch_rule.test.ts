import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  AutoPrefetch,
  CEILING,
  FULL_CLAIMS_TO_GROW,
  LEAST_AVERAGE_MS,
  TARGET_MS,
} from "../../src/prefetch.ts";

/** One round of a consumer: claim as many as the rule says, get a share of them, run them. */
const rounds = fc.array(
  fc.record({
    share: fc.double({ min: 0, max: 1, noNaN: true }),
    ms: fc.array(fc.double({ min: 0, max: 2_000, noNaN: true }), { maxLength: 16 }),
  }),
  { maxLength: 60 },
);

/** Plays rounds and calls back with each size. */
function play(
  played: readonly { share: number; ms: readonly number[] }[],
  each: (size: number, rule: AutoPrefetch, before: number) => void,
): AutoPrefetch {
  const rule = new AutoPrefetch();
  for (const { share, ms } of played) {
    const before = rule.current;
    const asked = rule.size();
    each(asked, rule, before);
    const got = Math.round(asked * share);
    rule.claimed(asked, got);
    for (const one of ms.slice(0, got)) rule.ran(one);
  }
  return rule;
}

function wanted(averageMs: number): number {
  return Math.min(CEILING, Math.max(1, Math.floor(TARGET_MS / Math.max(averageMs, LEAST_AVERAGE_MS))));
}

describe("the 250 ms rule, whatever happens", () => {
  test("its constants are those of the rule it comes from", () => {
    expect([TARGET_MS, CEILING, FULL_CLAIMS_TO_GROW, LEAST_AVERAGE_MS]).toEqual([250, 16, 2, 0.5]);
  });

  test("a size is a whole number from 1 to the ceiling", () => {
    fc.assert(
      fc.property(rounds, (played) => {
        play(played, (size) => {
          expect(Number.isInteger(size)).toBe(true);
          expect(size).toBeGreaterThanOrEqual(1);
          expect(size).toBeLessThanOrEqual(CEILING);
        });
      }),
    );
  });

  test("a batch never holds more than the target of work by the average, but for one job", () => {
    fc.assert(
      fc.property(rounds, (played) => {
        play(played, (size, { averageMs }) => {
          if (averageMs === undefined) return expect(size).toBe(1);
          expect(size === 1 || size * Math.max(averageMs, LEAST_AVERAGE_MS) <= TARGET_MS).toBe(true);
        });
      }),
    );
  });

  test("it grows by doubling at most", () => {
    fc.assert(
      fc.property(rounds, (played) => {
        play(played, (size, _, before) => expect(size).toBeLessThanOrEqual(2 * before));
      }),
    );
  });

  test("it grows only after two full claims, and no faster than at every second", () => {
    fc.assert(
      fc.property(rounds, (played) => {
        const rule = new AutoPrefetch();
        let full = 0;
        for (const { share, ms } of played) {
          const before = rule.current;
          const asked = rule.size();
          if (asked > before) {
            expect(full).toBeGreaterThanOrEqual(2);
            full = 0;
          }
          const got = Math.round(asked * share);
          full = got >= asked ? full + 1 : 0;
          rule.claimed(asked, got);
          for (const one of ms.slice(0, got)) rule.ran(one);
        }
      }),
    );
  });

  test("after a short claim the next asks for no more than what came, and after an empty one for one", () => {
    fc.assert(
      fc.property(rounds, fc.integer({ min: 0, max: 15 }), (played, got) => {
        const rule = play(played, () => {});
        const asked = rule.size();
        if (got >= asked) return;
        rule.claimed(asked, got);
        expect(rule.size()).toBeLessThanOrEqual(Math.max(1, got));
      }),
    );
  });

  test("the average lies among the times, and one job moves it by 0.3 of the way", () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 50 }),
        (times) => {
          const rule = new AutoPrefetch();
          for (const ms of times) {
            const before = rule.averageMs;
            rule.ran(ms);
            expect(rule.averageMs).toBeCloseTo(before === undefined ? ms : before + 0.3 * (ms - before), 6);
          }
          expect(rule.averageMs).toBeGreaterThanOrEqual(Math.min(...times) - 1e-6);
          expect(rule.averageMs).toBeLessThanOrEqual(Math.max(...times) + 1e-6);
        },
      ),
    );
  });

  test("on a full queue it reaches what is wanted within ten claims, and stays", () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1_000, noNaN: true }), (ms) => {
        const rule = new AutoPrefetch();
        const sizes: number[] = [];
        for (let i = 0; i < 20; i += 1) {
          const size = rule.size();
          sizes.push(size);
          rule.claimed(size, size);
          for (let job = 0; job < size; job += 1) rule.ran(ms);
        }
        expect(sizes.slice(10).every((size) => size === wanted(ms))).toBe(true);
      }),
    );
  });

  test("a slower job shrinks it at the very next claim", () => {
    const rule = new AutoPrefetch(1);
    for (let i = 0; i < 12; i += 1) rule.claimed(rule.size(), 16);
    expect(rule.size()).toBe(16);
    rule.ran(10_000);
    expect(rule.size()).toBe(1);
  });

  test("what an earlier run learned is where it begins", () => {
    const rule = new AutoPrefetch(100);
    expect([rule.averageMs, rule.size()]).toEqual([100, 1]);
    rule.claimed(1, 1);
    rule.claimed(1, 1);
    expect(rule.size()).toBe(2);
  });
});
