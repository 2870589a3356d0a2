/**
 * Many timers on one of the platform's. Nearly every request is answered long before its deadline, and setting and ending a timer of the runtime's for each costs
 * more than all else that a short job needs. So one is set for the earliest of them and left alone while they come and go: it may fire for nothing.
 *
 * @module
 */
import { Chain, Chained } from "./chain.ts";
import type { CancelTimer, Platform } from "./platform.ts";

/** How much of a millisecond the arithmetic of large clocks may lose. */
const ROUNDING_MS = 0.001;

class Entry extends Chained {
  readonly at: number;
  readonly fn: () => void;
  constructor(at: number, fn: () => void) {
    super();
    this.at = at;
    this.fn = fn;
  }
}

export class SharedTimer {
  readonly #clock: Pick<Platform, "now" | "setTimer">;
  readonly #entries = new Chain<Entry>();
  #armedAt = Number.POSITIVE_INFINITY;
  #cancel: CancelTimer | undefined;
  #closed = false;

  constructor(clock: Pick<Platform, "now" | "setTimer">) {
    this.#clock = clock;
  }

  /** As the platform's: calls `fn` once, not before `ms` milliseconds have passed. Never, once it is closed. */
  setTimer(ms: number, fn: () => void): CancelTimer {
    if (this.#closed) return () => {};
    const at = this.#clock.now() + ms;
    const entry = new Entry(at, fn);
    this.#entries.add(entry);
    if (at < this.#armedAt) this.#arm(at, ms);
    return () => this.#entries.delete(entry);
  }

  /** Ends them all; none fires any more. May be called twice. */
  close(): void {
    this.#closed = true;
    this.#entries.clear();
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #arm(at: number, inMs: number): void {
    this.#cancel?.();
    this.#armedAt = at;
    this.#cancel = this.#clock.setTimer(inMs, this.#fired);
  }

  readonly #fired = (): void => {
    this.#cancel = undefined;
    this.#armedAt = Number.POSITIVE_INFINITY;
    // A runtime's timer may be early.
    const now = this.#clock.now();
    let next = Number.POSITIVE_INFINITY;
    const due: Entry[] = [];
    for (const entry of this.#entries.all()) {
      if (entry.at <= now + ROUNDING_MS) due.push(entry);
      else next = Math.min(next, entry.at);
    }
    if (next < this.#armedAt) this.#arm(next, next - now);
    // One that fires can end others.
    for (const entry of due) if (this.#entries.delete(entry)) entry.fn();
  };
}
