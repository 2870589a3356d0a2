/**
 * Gaps that grow. Pure.
 *
 * @module
 */

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
