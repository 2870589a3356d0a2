/**
 * Many timers on one of the platform's. Nearly every request is answered long before its deadline, and setting and ending a timer of the runtime's for each costs
 * more than all else that a short job needs. So one is set for the earliest of them and left alone while they come and go: it may fire for nothing.
 *
 * @module
 */
import { Chain, Chained } from "./chain.ts";
import { OneTimer, ROUNDING_MS } from "./one_timer.ts";
import type { CancelTimer, Platform } from "./platform.ts";

const NEVER = Number.POSITIVE_INFINITY;

/** A timer that shares one of the platform's. */
export class Timeout extends Chained {
  /** When it fires, on the platform's clock, in milliseconds. */
  readonly at: number;
  readonly fn: () => void;
  constructor(at: number, fn: () => void) {
    super();
    this.at = at;
    this.fn = fn;
  }

  /** It fires no more. */
  cancel(): void {
    (this.chain as Chain<Timeout> | undefined)?.delete(this);
  }
}

export class SharedTimer {
  readonly #clock: Pick<Platform, "now" | "setTimer">;
  readonly #entries = new Chain<Timeout>();
  readonly #timer: OneTimer;
  /** What the timer is set to: no entry is due before. */
  #at = NEVER;
  #closed = false;

  constructor(clock: Pick<Platform, "now" | "setTimer">) {
    this.#clock = clock;
    this.#timer = new OneTimer(clock, () => this.#fire());
  }

  /**
   * As the platform's: calls `fn` once, not before `ms` milliseconds have passed. Never, once it is closed.
   *
   * @param now what the clock has just said; by default it is read, which costs more than all else here.
   */
  setTimer(ms: number, fn: () => void, now?: number): CancelTimer {
    const timeout = this.start(ms, fn, now);
    return () => timeout.cancel();
  }

  /** As {@linkcode SharedTimer.setTimer}, without a function made to end it. */
  start(ms: number, fn: () => void, now = this.#clock.now()): Timeout {
    const timeout = new Timeout(now + ms, fn);
    if (this.#closed) return timeout;
    this.#entries.add(timeout);
    if (timeout.at < this.#at) this.#set(timeout.at);
    return timeout;
  }

  /** Ends them all; none fires any more. May be called twice. */
  close(): void {
    this.#closed = true;
    this.#entries.clear();
    this.#timer.stop();
  }

  #set(at: number): void {
    this.#at = at;
    this.#timer.set(at);
  }

  #fire(): void {
    const now = this.#clock.now();
    let next = NEVER;
    const due: Timeout[] = [];
    for (const entry of this.#entries.all()) {
      if (entry.at <= now + ROUNDING_MS) due.push(entry);
      else next = Math.min(next, entry.at);
    }
    this.#set(next);
    // One that fires can end others.
    for (const entry of due) if (this.#entries.delete(entry)) entry.fn();
  }
}
