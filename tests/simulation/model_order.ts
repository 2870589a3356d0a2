/**
 * Which jobs a claim must hand out first.
 *
 * @module
 */
import type { JobView } from "./model_views.ts";
import type { Fail } from "./violation.ts";

/** A level is passed over at most this often in a row: low may wait for normal's turn, too. */
const MOST_PASSED_OVER = [0, 7, 8] as const;

/**
 * Within a level the oldest goes first, where it is certain which one is older; within one reply, higher levels stand first.
 */
export function checkOrder(taken: readonly JobView[], left: readonly JobView[], fail: Fail): void {
  for (const [index, job] of taken.entries()) {
    for (const other of [...taken.slice(index + 1), ...left]) {
      if (other.level === job.level && other.latest < job.earliest) {
        fail("wrongOrder", `job ${job.id} was handed out before ${other.id}, which is older`);
      }
    }
    const next = taken[index + 1];
    if (next !== undefined && next.level < job.level) {
      fail("wrongOrder", `job ${job.id} stands before ${next.id}, which is of a higher level`);
    }
  }
}

/** Counts how often levels with waiting jobs were passed over. */
export function checkLevels(
  taken: readonly JobView[],
  left: readonly JobView[],
  passedOver: [number, number, number],
  fail: Fail,
): void {
  for (const level of [1, 2] as const) {
    const own = taken.filter((job) => job.level === level).length;
    const waits = left.some((job) => job.level === level);
    if (own > 0 || !waits) {
      passedOver[level] = 0;
      continue;
    }
    passedOver[level] += taken.filter((job) => job.level < level).length;
    if (passedOver[level] > MOST_PASSED_OVER[level]) {
      fail("starved", `level ${level} was passed over ${passedOver[level]} times in a row`);
    }
  }
}
