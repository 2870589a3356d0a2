/**
 * What jobs cost where the clock stands still while code computes: jobs that only compute all seem to take no time, until the clock moves at the next I/O. So before the loop
 * goes on from such jobs, it lets the clock move (a timer of no time is I/O enough), and what they turn out to have cost together is shared among them.
 *
 * @module
 */
import type { Platform } from "./platform.ts";

export class Unclocked {
  readonly #platform: Platform;
  readonly #ran: (ms: number) => void;
  /** Jobs that ended since the clock last moved, by what it said they took. */
  readonly #pending: number[] = [];
  readonly #waiting = new Set<() => void>();
  /** What the clock says, and has said since the first of them ended. */
  #at = 0;
  #ticking = false;

  /** @param ran is told what each job took, in milliseconds. */
  constructor(platform: Platform, ran: (ms: number) => void) {
    this.#platform = platform;
    this.#ran = ran;
  }

  /** A job ended, after `ranMs` by the clock. */
  ended(now: number, ranMs: number): void {
    if (!this.#platform.clockStopsDuringCpu) return this.#ran(ranMs);
    // Moved by I/O of one of them: the next job's time has the rest of it.
    if (now !== this.#at) this.#share(0);
    this.#at = now;
    this.#pending.push(ranMs);
  }

  /** Whether all is known. If not, `then` is called once it is. */
  known(then: () => void): boolean {
    if (this.#pending.length === 0) return true;
    if (this.#platform.now() !== this.#at) {
      this.#share(0);
      return true;
    }
    this.#waiting.add(then);
    if (this.#ticking) return false;
    this.#ticking = true;
    this.#platform.setTimer(0, () => {
      this.#ticking = false;
      // Also where the clock did not move: then they took no time indeed.
      this.#share(Math.max(0, this.#platform.now() - this.#at));
      const waiting = [...this.#waiting];
      this.#waiting.clear();
      for (const go of waiting) go();
    });
    return false;
  }

  #share(hiddenMs: number): void {
    const jobs = this.#pending.splice(0);
    for (const ms of jobs) this.#ran(ms + hiddenMs / jobs.length);
  }
}
