/**
 * The 250 ms rule: how many jobs a claim asks for. Pure: no I/O, no clock.
 *
 * Many short jobs are claimed in batches so that the round trip is shared; a batch never holds much more than a quarter of a second
 * of work, so that no job waits long behind others while another worker is free. The rule comes from a queue driver's published example ("How
 * Laravel queue prefetch fills a batch"), constants included.
 *
 * @module
 */

/** A batch should hold about this much work, in milliseconds. */
export const TARGET_MS = 250;
/** No claim asks for more (per slot). */
export const CEILING = 16;
/** A batch doubles after so many full claims in a row: one alone can be a burst on a quiet queue. */
export const FULL_CLAIMS_TO_GROW = 2;
/** How much the newest job weighs in the average. */
export const WEIGHT = 0.3;
/** The average counts as no less than this, in milliseconds, so that jobs too short to measure do not divide by zero. */
export const LEAST_AVERAGE_MS = 0.5;

/** Sizes the claims of one queue from the time its jobs take. */
export class AutoPrefetch {
  #averageMs: number | undefined;
  #current = 1;
  #fullClaims = 0;

  /**
   * @param averageMs what an earlier run learned of the queue's jobs, in milliseconds.
   * @param current the batch it had grown to.
   */
  constructor(averageMs?: number, current = 1) {
    this.#averageMs = averageMs;
    this.#current = Math.min(Math.max(1, Math.floor(current)), CEILING);
  }

  /** The moving average of the job time in milliseconds; `undefined` before the first. */
  get averageMs(): number | undefined {
    return this.#averageMs;
  }

  /** What {@linkcode AutoPrefetch.size} last answered, or 1. */
  get current(): number {
    return this.#current;
  }

  /**
   * A job ran.
   *
   * @param ms from its hand-over to the handler until its slot was ready for the next. Never time spent waiting on an empty queue.
   */
  ran(ms: number): void {
    this.#averageMs = this.#averageMs === undefined ? ms : this.#averageMs + WEIGHT * (ms - this.#averageMs);
  }

  /**
   * A claim was answered.
   *
   * @param asked for how many.
   * @param got how many came.
   */
  claimed(asked: number, got: number): void {
    if (got >= asked) {
      this.#fullClaims += 1;
    } else {
      this.#fullClaims = 0;
      this.#current = Math.max(1, got);
    }
  }

  /** How many the next claim asks for (per free slot). To be called once a claim. */
  size(): number {
    if (this.#averageMs === undefined) return this.#current;
    const fits = Math.floor(TARGET_MS / Math.max(this.#averageMs, LEAST_AVERAGE_MS));
    const wanted = Math.min(Math.max(fits, 1), CEILING);
    let grown = this.#current;
    if (this.#fullClaims >= FULL_CLAIMS_TO_GROW && this.#current < wanted) {
      grown = 2 * this.#current;
      this.#fullClaims = 0;
    }
    this.#current = Math.min(wanted, grown);
    return this.#current;
  }
}
