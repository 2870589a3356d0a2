/**
 * What a queue's loop has counted since it started.
 *
 * @module
 */

export interface QueueStats {
  readonly queue: string;
  /** Claims answered, and how many of them brought nothing. */
  readonly claims: number;
  readonly emptyClaims: number;
  /** Deliveries received. */
  readonly received: number;
  /** Jobs that a handler was called with. */
  readonly started: number;
  /** Verdicts the broker took. */
  readonly acked: number;
  readonly retried: number;
  readonly dead: number;
  readonly released: number;
  /** Deliveries whose lease was over before they were settled, or whose verdict the broker never confirmed. */
  readonly lost: number;
  /** Of all these: jobs whose handler ignored its signal and was left behind. */
  readonly abandoned: number;
  /** Leases renewed (each renewal of each lease counts). */
  readonly renewals: number;
  /** Requests that failed. */
  readonly brokerErrors: number;
  /** Jobs running now. */
  readonly running: number;
  /** Deliveries claimed and not settled, running ones included. */
  readonly held: number;
  /** The moving average of the job time, in milliseconds. */
  readonly averageMs: number | undefined;
  /** What the last claim was sized to (per free slot when `prefetch` is `"auto"`). */
  readonly prefetch: number;
  /** The moving average of a claim's round trip, in milliseconds. */
  readonly roundTripMs: number | undefined;
}

/** A time in milliseconds as it is told, to 0.01: finer digits are a clock's noise. */
export function hundredths(ms: number): number {
  return Math.round(ms * 100) / 100;
}

/** The counters a loop moves. */
export class Counters {
  claims = 0;
  emptyClaims = 0;
  received = 0;
  started = 0;
  acked = 0;
  retried = 0;
  dead = 0;
  released = 0;
  lost = 0;
  abandoned = 0;
  renewals = 0;
  brokerErrors = 0;
}
