/**
 * A timer that is set anew again and again, of which only the last setting counts.
 *
 * @module
 */
import type { CancelTimer, Platform } from "./platform.ts";

export class OneTimer {
  readonly #platform: Platform;
  readonly #fire: () => void;
  #cancel: CancelTimer | undefined;
  #at = Number.POSITIVE_INFINITY;

  constructor(platform: Platform, fire: () => void) {
    this.#platform = platform;
    this.#fire = fire;
  }

  /** Sets it to a time of the platform's clock, in milliseconds; `Infinity` for not at all. */
  set(at: number): void {
    if (at === this.#at) return;
    this.#cancel?.();
    this.#cancel = undefined;
    this.#at = at;
    if (at === Number.POSITIVE_INFINITY) return;
    this.#cancel = this.#platform.setTimer(Math.max(0, at - this.#platform.now()), () => {
      this.#cancel = undefined;
      this.#at = Number.POSITIVE_INFINITY;
      this.#fire();
    });
  }
}
