/**
 * What one queue's loop has in its hands: counts its deliveries until each is over, and ends a lease with the last of them.
 *
 * @module
 */
import type { Verdict } from "./broker.ts";
import type { HeldDelivery, HeldLease } from "./held.ts";
import type { LastChances } from "./last_chances.ts";
import type { LeaseKeeper } from "./lease_keeper.ts";
import type { Reports } from "./reports.ts";

export class Holdings {
  readonly #keeper: LeaseKeeper;
  readonly #reports: Reports;
  readonly #lastChances: LastChances;
  #count = 0;
  /** Whether all that was held is accounted for: the loop has ended. */
  #closed = false;

  constructor(keeper: LeaseKeeper, reports: Reports, lastChances: LastChances) {
    this.#keeper = keeper;
    this.#reports = reports;
    this.#lastChances = lastChances;
  }

  /** Deliveries claimed and not settled. */
  get count(): number {
    return this.#count;
  }

  /** A claim brought deliveries under this lease. */
  took(lease: HeldLease): void {
    this.#count += lease.open;
    this.#keeper.add(lease);
  }

  /** The broker took a verdict. It counts, even if the lease had been given up meanwhile. */
  settled(held: HeldDelivery, kind: Verdict["kind"]): void {
    this.#reports.settled(held, kind);
    this.#end(held);
  }

  /** A delivery's verdict can count no more, or was refused: its job comes back when its lease is over. */
  lose(held: HeldDelivery): void {
    if (held.over || this.#closed) return;
    this.#reports.lost(held);
    this.#end(held);
  }

  /** The loop has ended: of what is held still it will never be known whether its verdicts count. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#reports.unsettled(this.#count);
    this.#count = 0;
  }

  #end(held: HeldDelivery): void {
    held.over = true;
    this.#lastChances.over(held);
    this.#count -= 1;
    held.lease.open -= 1;
    if (held.lease.open === 0) this.#keeper.drop(held.lease);
  }
}
