/**
 * Leases: when to renew, when one counts as lost. Pure: times come in as arguments, in milliseconds of the worker's own clock.
 *
 * @module
 */

/** A lease is renewed when this share of it has passed, so that a failed renewal can be repeated. */
export const FIRST_RENEWAL_SHARE = 1 / 3;

/** How long after a failed renewal the next is tried, in milliseconds. */
const RENEWAL_RETRY_MS = 1_000;

/**
 * How much sooner than the broker the worker takes a lease for lost, in milliseconds: room for timers that fire late and for clocks
 * of slightly different speed.
 */
export function leaseMarginMs(leaseMs: number): number {
  return Math.min(1_000, leaseMs / 20);
}

/**
 * When the worker takes a lease for lost. Anchored at the moment the request was *sent*: the broker's lease starts later, when the request arrives, so
 * this is never later than the broker's own idea.
 */
export function leaseDeadline(sentAt: number, leaseMs: number): number {
  return sentAt + leaseMs - leaseMarginMs(leaseMs);
}

/** When a lease, claimed or renewed by a request sent at `sentAt`, is to be renewed. */
export function renewalDue(sentAt: number, leaseMs: number): number {
  return sentAt + leaseMs * FIRST_RENEWAL_SHARE;
}

/** Whether a lease is old enough that renewing it for nothing, in a request that goes out anyway, spares one of its own. */
export function renewalWorthwhile(now: number, sentAt: number, leaseMs: number): boolean {
  return now - sentAt >= (leaseMs * FIRST_RENEWAL_SHARE) / 2;
}

/** How long an engine that can wait for a first job is asked to, in milliseconds. */
const LONGEST_WAIT_MS = 20_000;

/**
 * The share of a lease that a claim may wait. A lease counts from its claim's sending, so a longer wait would use it up: what came late would be
 * overdue for renewal, or lost, when it arrives.
 */
const WAIT_SHARE_RENEWED = 1 / 3;
const WAIT_SHARE_UNRENEWED = 1 / 10;

/** How long a claim may wait at the engine, in milliseconds. */
export function claimWaitMs(leaseMs: number, renews: boolean): number {
  return Math.min(
    LONGEST_WAIT_MS,
    Math.floor(leaseMs * (renews ? WAIT_SHARE_RENEWED : WAIT_SHARE_UNRENEWED)),
  );
}

/** When to try again after a failed renewal; `undefined` when none sent then could land before the deadline. */
export function renewalRetryAt(now: number, leaseMs: number, deadline: number): number | undefined {
  const at = now + Math.min(RENEWAL_RETRY_MS, leaseMs / 10);
  return at < deadline ? at : undefined;
}
