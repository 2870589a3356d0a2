/**
 * Delays that grow, with full jitter: a fleet that failed together never comes back together.
 * The rule is the "full jitter" of Marc Brooker's "Exponential Backoff And Jitter" (AWS, 2015).
 *
 * @module
 */

/**
 * A delay in whole milliseconds, evenly spread between 0 and `baseMs * 2^(attempt - 1)`, and never above `maxMs`.
 *
 * @param attempt 1 for the first failure.
 * @param random a number in [0, 1).
 */
export function fullJitter(attempt: number, random: number, baseMs: number, maxMs: number): number {
  // Above 2^31 the cap has long been reached; the bound keeps the power finite.
  const ceiling = Math.min(maxMs, baseMs * 2 ** Math.min(attempt - 1, 31));
  return Math.floor(random * ceiling);
}

/** How the loop waits after broker errors: 100 ms doubling to `longestMs` (10 s), full jitter. */
export function brokerBackoffMs(failures: number, random: number, longestMs = 10_000): number {
  return fullJitter(failures, random, 100, longestMs);
}
