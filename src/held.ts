/**
 * What a worker holds: leases, and the deliveries under them.
 *
 * @module
 */
import type { Delivery } from "./broker.ts";
import { Chained } from "./chain.ts";

/** One claim's lease, as the worker knows it. Times are of the platform's `now`. */
export class HeldLease extends Chained {
  readonly id: string;
  readonly owner: LeaseOwner;
  /** Deliveries not yet settled. The lease is over at 0. */
  open: number;
  deadline: number;
  /** When the request that claimed or last renewed it was sent. */
  sentAt: number;
  /** When it is to be renewed next; Infinity while a renewal is under way or none makes sense. */
  renewAt: number;
  /** The renewal under way, if any. Never rejects. */
  renewing: Promise<void> | undefined;
  lost = false;

  constructor(
    id: string,
    owner: LeaseOwner,
    open: number,
    sentAt: number,
    deadline: number,
    renewAt: number,
  ) {
    super();
    this.id = id;
    this.owner = owner;
    this.open = open;
    this.sentAt = sentAt;
    this.deadline = deadline;
    this.renewAt = renewAt;
  }
}

/** Whoever claimed a lease: the queue loop it belongs to. */
export interface LeaseOwner {
  readonly leaseMs: number;
  readonly renews: boolean;
  /** Renews leases in one request. May reject. */
  renew(leaseIds: readonly string[]): Promise<readonly ("held" | "lost")[]>;
  /** A lease is over before its deliveries were settled. Called once a lease. */
  lost(lease: HeldLease, why: string): void;
}

/** A delivery in the worker's hands. */
export interface HeldDelivery {
  readonly delivery: Delivery;
  readonly lease: HeldLease;
  /** Whether it was given to a handler. */
  started: boolean;
  /** Whether it was settled, or given up. */
  over: boolean;
}
