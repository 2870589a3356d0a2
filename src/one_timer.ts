/**
 * A timer that is set anew again and again, of which only the last setting counts. One of the platform's that is early enough is left alone, and looks again when it fires:
 * setting one and ending it costs more than a short job.
 *
 * @module
 */
import type { CancelTimer, Platform } from "./platform.ts";

const NEVER = Number.POSITIVE_INFINITY;
/** How much of a millisecond the arithmetic of large clocks may lose. */
export const ROUNDING_MS = 0.001;

export class OneTimer {
  readonly #platform: Pick<Platform, "now" | "setTimer">;
  readonly #fire: () => void;
  #cancel: CancelTimer | undefined;
  #at = NEVER;
  #armedAt = NEVER;

  constructor(platform: Pick<Platform, "now" | "setTimer">, fire: () => void) {
    this.#platform = platform;
    this.#fire = fire;
  }

  /** Sets it to a time of the platform's clock, in milliseconds; `Infinity` for not at all. */
  set(at: number): void {
    this.#at = at;
    if (at < this.#armedAt) this.#arm(this.#platform.now());
  }

  /** As set to `Infinity`, with none of the platform's left. */
  stop(): void {
    this.#at = NEVER;
    this.#armedAt = NEVER;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #arm(now: number): void {
    this.#cancel?.();
    this.#armedAt = this.#at;
    this.#cancel = this.#platform.setTimer(Math.max(0, this.#at - now), this.#fired);
  }

  readonly #fired = (): void => {
    this.#cancel = undefined;
    this.#armedAt = NEVER;
    if (this.#at === NEVER) return;
    const now = this.#platform.now();
    if (this.#at > now + ROUNDING_MS) return this.#arm(now);
    this.#at = NEVER;
    this.#fire();
  };
}
