/**
 * Verdicts on their way to the broker. They ride on the next exchange, or leave alone when they have waited long enough; what could not be sent comes back and is
 * sent again while its lease holds.
 *
 * @module
 */
import type { Settlement, Verdict } from "./broker.ts";
import type { HeldDelivery, HeldLease } from "./held.ts";

export interface OutgoingVerdict extends Settlement {
  readonly held: HeldDelivery;
  readonly since: number;
}

/** The most verdicts one request carries. */
export const MAX_SETTLE = 1_000;

/** How long verdicts wait for the request behind a claim that is on its way, in milliseconds: two requests in one cost an engine and its link half as much. */
const SOON_MS = 5;
/** So many of them at most: more keep the engine busy meanwhile. */
const FEW = 64;

export class Outbox {
  #waiting: OutgoingVerdict[] = [];
  #inFlight = 0;

  /** Verdicts waiting to be sent. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Verdicts sent and not answered. */
  get inFlight(): number {
    return this.#inFlight;
  }

  get empty(): boolean {
    return this.#waiting.length === 0 && this.#inFlight === 0;
  }

  /** Since when the oldest waits, in milliseconds of the platform's clock; `undefined` when none does. */
  get oldestSince(): number | undefined {
    return this.#waiting[0]?.since;
  }

  /** By when they leave alone, where a claim is on its way that is probably answered before. */
  get soonAt(): number {
    const { oldestSince = Number.NEGATIVE_INFINITY } = this;
    return this.#waiting.length > FEW ? Number.NEGATIVE_INFINITY : oldestSince + SOON_MS;
  }

  add(held: HeldDelivery, verdict: Verdict, now: number): void {
    this.#waiting.push({ delivery: held.delivery, held, verdict, since: now });
  }

  /** The next verdicts to send, oldest first. Each comes back by {@linkcode Outbox.putBack} or is done by {@linkcode Outbox.answered}. */
  take(): OutgoingVerdict[] {
    let taken: OutgoingVerdict[];
    if (this.#waiting.length <= MAX_SETTLE) {
      taken = this.#waiting;
      this.#waiting = [];
    } else {
      taken = this.#waiting.splice(0, MAX_SETTLE);
    }
    this.#inFlight += taken.length;
    return taken;
  }

  answered(taken: readonly OutgoingVerdict[]): void {
    this.#inFlight -= taken.length;
  }

  /** The request failed: those whose lease still holds wait again, before the others. Answers those whose lease is over. */
  putBack(taken: readonly OutgoingVerdict[]): OutgoingVerdict[] {
    this.#inFlight -= taken.length;
    const again = taken.filter((entry) => !entry.held.lease.lost);
    if (again.length > 0) this.#waiting = [...again, ...this.#waiting];
    return taken.filter((entry) => entry.held.lease.lost);
  }

  /** A lease is over: takes its waiting verdicts out and answers them. */
  dropLease(lease: HeldLease): OutgoingVerdict[] {
    const dropped = this.#waiting.filter((entry) => entry.held.lease === lease);
    if (dropped.length > 0) this.#waiting = this.#waiting.filter((entry) => entry.held.lease !== lease);
    return dropped;
  }
}
