/**
 * Leaves the event loop its turn. An engine inside this process answers without one, and so do handlers that wait for nothing: then a
 * worker would go from batch to batch while no timer fires, no signal is heard and no other request is served.
 *
 * @module
 */
import type { CancelTimer, Platform } from "./platform.ts";

/** How long a worker keeps the event loop to itself at most (a batch is not cut), in milliseconds. */
const LONGEST_MS = 20;
/** The same where the clock stands still while code computes: in claims. */
const MOST_CLAIMS = 64;
/**
 * After how many milliseconds a timer looks whether the event loop still has its turns. One of 0 for each claim would make every round of the loop two: where claims go over a
 * socket, each has a round of its own.
 */
const LOOK_MS = 10;

export class Turns {
  readonly #platform: Platform;
  readonly #waiting = new Set<() => void>();
  /** When the timer was set that tells of a turn; `undefined` when none is. */
  #since: number | undefined;
  #claims = 0;
  #cancel: CancelTimer | undefined;

  constructor(platform: Platform) {
    this.#platform = platform;
  }

  /** Whether a claim may go out at `now`, which is what the clock says. If not, `then` is called after the event loop's turn, once. */
  mayClaim(now: number, then: () => void): boolean {
    if (this.#since === undefined) return true;
    const tooMany = this.#platform.clockStopsDuringCpu && this.#claims >= MOST_CLAIMS;
    if (now - this.#since < LONGEST_MS && !tooMany) return true;
    this.#waiting.add(then);
    return false;
  }

  /** A claim went out. */
  claimed(): void {
    this.#claims += 1;
    if (this.#since !== undefined) return;
    this.#since = this.#platform.now();
    this.#cancel = this.#platform.setTimer(this.#platform.clockStopsDuringCpu ? 0 : LOOK_MS, this.#turned);
  }

  /** Ends its timer; nobody who waits is called any more. */
  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#waiting.clear();
  }

  readonly #turned = (): void => {
    this.#since = undefined;
    this.#claims = 0;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const then of waiting) then();
  };
}
