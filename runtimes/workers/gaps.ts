/**
 * Gaps that grow. Pure.
 *
 * @module
 */
import type { DrainReport } from "../../src/drain.ts";

/** The first and the longest gap, in milliseconds. */
export interface GapOptions {
  /** Default 250. */
  readonly min?: number;
  /** Default 5,000, or `min` if that is longer. */
  readonly max?: number;
}

/** A row of gaps. */
export interface Gaps {
  /** Starts again at the first. */
  begin(): void;
  /** The next gap: each may be twice as long as the last, and is shortened by up to a quarter, so that many never go in step. */
  next(random: number): number;
}

/**
 * Makes a row of gaps.
 *
 * @throws {RangeError} when `min` or `max` is no whole number from 1 on, or `max` is below `min`.
 */
export function growingGaps(options: GapOptions): Gaps {
  const min = options.min ?? 250;
  const max = options.max ?? Math.max(5_000, min);
  for (const [field, value] of Object.entries({ min, max })) {
    if (!Number.isSafeInteger(value) || value < 1)
      throw new RangeError(`Cannot set gaps: ${field} is ${value}; give a whole number from 1 on`);
  }
  if (max < min) throw new RangeError(`Cannot set gaps: max is ${max}; raise it to min (${min}) or more`);
  let gap = min;
  return {
    begin() {
      gap = min;
    },
    next(random) {
      const now = gap;
      gap = Math.min(max, gap * 2);
      return Math.ceil(now * (1 - random / 4));
    },
  };
}

/** Whether a drain left work that the next one would get at once. What is in paused queues, nobody gets. */
export function goesOn({ stopped }: Pick<DrainReport, "stopped">): boolean {
  return stopped !== "empty" && stopped !== "paused";
}

/**
 * How long to wait after a drain that left nothing to do at once, in milliseconds: the gap, or less when a job is due sooner.
 *
 * @param gapMs the gap that it is the turn of.
 */
export function gapAfter(
  { jobs, nextDueMs }: Pick<DrainReport, "jobs" | "nextDueMs">,
  gapMs: number,
): number {
  // What is said to be due by now, and yet was not to be had, may stay out of reach for longer.
  if (nextDueMs === null || (nextDueMs === 0 && jobs === 0)) return gapMs;
  return Math.min(gapMs, nextDueMs);
}
