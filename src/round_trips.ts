/**
 * What requests over one link take: on average, and at most of late. Pure.
 *
 * @module
 */

/** How much the newest round trip weighs in the average. */
const WEIGHT = 0.3;

/** Of so many the slowest counts: few enough that one hiccup is soon forgotten, enough to see a link's jitter. */
const RECENT = 8;

export class RoundTrips {
  readonly #recent: number[] = [];
  #averageMs: number | undefined;

  /** The moving average, in milliseconds; `undefined` before the first. */
  get averageMs(): number | undefined {
    return this.#averageMs;
  }

  /** The slowest of the last eight, in milliseconds; `undefined` before the first. */
  get slowestMs(): number | undefined {
    return this.#recent.length === 0 ? undefined : Math.max(...this.#recent);
  }

  /** A request was answered after so many milliseconds. */
  took(ms: number): void {
    this.#averageMs = this.#averageMs === undefined ? ms : this.#averageMs + WEIGHT * (ms - this.#averageMs);
    this.#recent.push(ms);
    if (this.#recent.length > RECENT) this.#recent.shift();
  }
}
