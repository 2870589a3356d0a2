/**
 * How a claim is shared among the levels: high first, but a level that waits is passed over at most seven times in a row. Pure.
 *
 * @module
 */
import type { Level } from "./names.ts";

const MOST_PASSED_OVER = 7;

export type PerLevel<T> = [high: T, normal: T, low: T];

/** Which level the next delivery is due to; `undefined` when none has anything. */
function nextLevel(has: Readonly<PerLevel<boolean>>, passed: Readonly<PerLevel<number>>): Level | undefined {
  if (has[1] && passed[1] >= MOST_PASSED_OVER) return 1;
  if (has[2] && passed[2] >= MOST_PASSED_OVER) return 2;
  return has[0] ? 0 : has[1] ? 1 : has[2] ? 2 : undefined;
}

/** Keeps, over claims, how often each waiting level was passed over. */
export class Fairness {
  #passed: PerLevel<number> = [0, 0, 0];

  /** How many of `max` deliveries each level is to give, if all that have something have enough. */
  allot(max: number, has: Readonly<PerLevel<boolean>>): PerLevel<number> {
    const quota: PerLevel<number> = [0, 0, 0];
    const passed: PerLevel<number> = [...this.#passed];
    for (let n = 0; n < max; n++) {
      const level = nextLevel(has, passed);
      if (level === undefined) break;
      quota[level] += 1;
      pass(level, has, passed);
    }
    return quota;
  }

  /** Only the normal level gave any, and nobody else has any: nobody was passed over. */
  gaveNormalOnly(): void {
    const passed = this.#passed;
    passed[0] = 0;
    passed[1] = 0;
    passed[2] = 0;
  }

  /** What each level really gave, and which of them may have more. */
  gave(counts: Readonly<PerLevel<number>>, more: Readonly<PerLevel<boolean>>): void {
    if (counts[0] + counts[2] === 0 && !more[0] && !more[2]) {
      // Nobody was passed over.
      this.#passed = [0, 0, 0];
      return;
    }
    const left: PerLevel<number> = [...counts];
    for (;;) {
      const given: PerLevel<boolean> = [left[0] > 0, left[1] > 0, left[2] > 0];
      const level = nextLevel(given, this.#passed);
      if (level === undefined) return;
      left[level] -= 1;
      pass(level, [given[0] || more[0], given[1] || more[1], given[2] || more[2]], this.#passed);
    }
  }
}

function pass(level: Level, has: Readonly<PerLevel<boolean>>, passed: PerLevel<number>): void {
  for (const lower of [1, 2] as const) {
    if (!has[lower] || level === lower) passed[lower] = 0;
    else if (level < lower || lower === 2) passed[lower] += 1;
  }
}
