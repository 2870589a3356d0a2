/**
 * What bounds a run that must end by itself.
 *
 * @module
 */
import type { Asking } from "./asking.ts";

/** A queue's loop, as far as what bounds it looks at it. */
export interface LimitedLoop {
  readonly asking: Asking;
  /** How many handlers may run at a time. */
  readonly slots: number;
  /** Deliveries claimed whose handlers are not done. */
  readonly unfinished: number;
  /** How many a claim under way may bring. */
  readonly asked: number;
  /** Looks again at what it may do. */
  readonly wake: () => void;
}

/** Bounds a run that must end by itself (a drain); a worker has none. */
export interface RunLimiter {
  /** How many of `wanted` jobs a claim may ask for; 0 for none now. */
  room(loop: LimitedLoop, wanted: number): number;
  /** Whether a job already held may still be started. */
  mayStart(loop: LimitedLoop): boolean;
  /** Whether a claim whose answer never came may be sent again. */
  mayClaimAgain(loop: LimitedLoop): boolean;
  /** Whether only the requests are left that are kept back to settle. Then verdicts leave together. */
  saving(): boolean;
  /** Whether there is a request left to settle with. */
  maySettle(): boolean;
  /** Whether there is a request left to renew leases with, beside what has to be kept to settle. */
  mayRenew(): boolean;
  /** Jobs came in; fewer than none: that many went back unstarted. */
  took(count: number): void;
  /** A handler is done: how long it took, the requests it made, and how many jobs it had. */
  ran(loop: LimitedLoop, ms: number, requests: number, jobs: number): void;
  /** A claim came back short: in how many milliseconds the next job is due, if the engine says so, and when the first of the loop's own leases may end. */
  missed(loop: LimitedLoop, nextDueMs: number | undefined, ownEndsAt: number): void;
  /** A job goes back to its queue, or was left to its lease, and is due in so many milliseconds. */
  delayed(loop: LimitedLoop, delayMs: number): void;
  /** The queue had nothing, and nothing of it is held. */
  emptied(loop: LimitedLoop): void;
  /** The memo to leave with the queue for the next run; `undefined` for none. */
  memo(loop: LimitedLoop): string | undefined;
  /** Something changed in a loop. */
  changed(): void;
}
