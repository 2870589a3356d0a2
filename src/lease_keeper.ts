/**
 * Keeps a worker's leases alive. One timer serves them all: it is set to the earliest renewal or deadline, so batches of short jobs come and go without a
 * timer of theirs (a platform may refuse thousands of them).
 *
 * @module
 */
import type { RenewResult } from "./broker.ts";
import { Chain } from "./chain.ts";
import type { HeldLease, LeaseOwner } from "./held.ts";
import { leaseDeadline, renewalDue, renewalRetryAt, renewalWorthwhile } from "./lease.ts";
import type { CancelTimer, Platform } from "./platform.ts";

const RAN_OUT = "it ran out before it could be renewed";

export class LeaseKeeper {
  readonly #platform: Platform;
  readonly #leases = new Chain<HeldLease>();
  #closed = false;
  #armedAt = Number.POSITIVE_INFINITY;
  #cancel: CancelTimer | undefined;

  constructor(platform: Platform) {
    this.#platform = platform;
  }

  /** How many leases are being kept. */
  get size(): number {
    return this.#leases.size;
  }

  /** Begins to keep a lease. */
  add(lease: HeldLease): void {
    if (this.#closed) return;
    this.#leases.add(lease);
    this.#arm(Math.min(lease.renewAt, lease.deadline));
  }

  /** The lease is over: all settled, or given up. Its timer, if it was the next, fires for nothing. */
  drop(lease: HeldLease): void {
    this.#leases.delete(lease);
  }

  /**
   * The owner's leases that are old enough to be renewed along with a request that goes out anyway. They count as being renewed until
   * {@linkcode LeaseKeeper.answered} or {@linkcode LeaseKeeper.failed} is called; after that the caller settles `done`.
   *
   * @param ends whether that request ends the lease, so that there is nothing to renew.
   */
  ride(owner: LeaseOwner, done: Promise<void>, ends: (lease: HeldLease) => boolean): HeldLease[] {
    const riding: HeldLease[] = [];
    const now = this.#platform.now();
    for (const lease of this.#leases.all()) {
      if (
        lease.owner !== owner ||
        !owner.renews ||
        lease.lost ||
        lease.renewing !== undefined ||
        lease.open === 0
      )
        continue;
      if (!renewalWorthwhile(now, lease.sentAt, owner.leaseMs) || ends(lease)) continue;
      lease.renewing = done;
      lease.renewAt = Number.POSITIVE_INFINITY;
      riding.push(lease);
    }
    return riding;
  }

  /** A renewal sent at `sentAt` was answered. */
  answered(leases: readonly HeldLease[], results: readonly RenewResult[], sentAt: number): void {
    leases.forEach((lease, index) => {
      lease.renewing = undefined;
      if (!this.#leases.has(lease)) return;
      if (results[index] === "held") {
        lease.sentAt = sentAt;
        lease.deadline = leaseDeadline(sentAt, lease.owner.leaseMs);
        lease.renewAt = renewalDue(sentAt, lease.owner.leaseMs);
        this.#arm(Math.min(lease.renewAt, lease.deadline));
      } else {
        this.#lose(lease, "the broker says that it is no longer held");
      }
    });
  }

  /** A renewal failed; it is tried again while it can still land. */
  failed(leases: readonly HeldLease[]): void {
    const now = this.#platform.now();
    for (const lease of leases) {
      lease.renewing = undefined;
      if (!this.#leases.has(lease)) continue;
      lease.renewAt = renewalRetryAt(now, lease.owner.leaseMs, lease.deadline) ?? Number.POSITIVE_INFINITY;
      this.#arm(Math.min(lease.renewAt, lease.deadline));
    }
  }

  /** When the first of the owner's leases ends at the earliest, if it is not renewed any more; `Infinity` where it has none. */
  endsAt(owner: LeaseOwner): number {
    let endsAt = Number.POSITIVE_INFINITY;
    for (const lease of this.#leases.all()) {
      if (lease.owner === owner) endsAt = Math.min(endsAt, lease.sentAt + owner.leaseMs);
    }
    return endsAt;
  }

  /** Whether a lease is over by the clock, its timer being late; if so its owner is told first. `now` is what the clock says. */
  expired(lease: HeldLease, now: number): boolean {
    if (!lease.lost && now >= lease.deadline) this.#lose(lease, RAN_OUT);
    return lease.lost;
  }

  /** Forgets every lease and its timer, and takes no more. */
  close(): void {
    this.#closed = true;
    this.#leases.clear();
    this.#cancel?.();
    this.#cancel = undefined;
    this.#armedAt = Number.POSITIVE_INFINITY;
  }

  #lose(lease: HeldLease, why: string): void {
    this.#leases.delete(lease);
    if (lease.lost) return;
    lease.lost = true;
    lease.owner.lost(lease, why);
  }

  #arm(at: number): void {
    if (at >= this.#armedAt) return;
    this.#cancel?.();
    this.#armedAt = at;
    this.#cancel = this.#platform.setTimer(Math.max(0, at - this.#platform.now()), () => this.#tick());
  }

  #tick(): void {
    this.#cancel = undefined;
    this.#armedAt = Number.POSITIVE_INFINITY;
    const now = this.#platform.now();
    const due = new Map<LeaseOwner, HeldLease[]>();
    for (const lease of this.#leases.all()) {
      // Losing one can end others.
      if (!this.#leases.has(lease)) continue;
      if (now >= lease.deadline) {
        this.#lose(lease, RAN_OUT);
      } else if (lease.owner.renews && now >= lease.renewAt) {
        const group = due.get(lease.owner);
        if (group === undefined) due.set(lease.owner, [lease]);
        else group.push(lease);
      }
    }
    for (const [owner, leases] of due) this.#renew(owner, leases, now);
    let next = Number.POSITIVE_INFINITY;
    for (const lease of this.#leases.all()) next = Math.min(next, lease.renewAt, lease.deadline);
    if (next !== Number.POSITIVE_INFINITY) this.#arm(next);
  }

  #renew(owner: LeaseOwner, leases: HeldLease[], sentAt: number): void {
    for (const lease of leases) lease.renewAt = Number.POSITIVE_INFINITY;
    const renewing = owner
      .renew(leases.map((lease) => lease.id))
      .then((results) => this.answered(leases, results, sentAt))
      .catch(() => this.failed(leases));
    for (const lease of leases) lease.renewing = renewing;
  }
}
