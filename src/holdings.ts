/**
 * What one queue's loop has in its hands: deliveries that wait to start, and verdicts that wait to be sent. It counts each delivery until it is over, and ends a lease with the
 * last of them.
 *
 * @module
 */
import type { SettleResult, Verdict } from "./broker.ts";
import type { HeldDelivery, HeldLease } from "./held.ts";
import type { LastChances } from "./last_chances.ts";
import type { LeaseKeeper } from "./lease_keeper.ts";
import { Outbox, type OutgoingVerdict } from "./outbox.ts";
import type { Reports } from "./reports.ts";
import type { Outcome } from "./verdict.ts";

const NEVER = Number.POSITIVE_INFINITY;

export interface HoldingsOptions {
  readonly keeper: LeaseKeeper;
  readonly reports: Reports;
  readonly lastChances: LastChances;
  /** Told how many go back unstarted. */
  readonly released: (count: number) => void;
}

export class Holdings {
  readonly outbox = new Outbox();
  readonly #options: HoldingsOptions;
  /** Held, not started. */
  readonly #waiting: HeldDelivery[] = [];
  #count = 0;
  /** Whether all that was held is accounted for: the loop has ended. */
  #closed = false;

  constructor(options: HoldingsOptions) {
    this.#options = options;
  }

  /** Deliveries claimed and not settled. */
  get count(): number {
    return this.#count;
  }

  /** Deliveries held and not started. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Deliveries claimed whose handlers are not done. */
  get unfinished(): number {
    return this.#count - this.outbox.waiting - this.outbox.inFlight;
  }

  /** Whether nothing waits, neither to start nor to be settled. Handlers may be running. */
  get nothingWaits(): boolean {
    return this.outbox.empty && this.#waiting.length === 0;
  }

  /** A claim brought deliveries under this lease. */
  took(lease: HeldLease): void {
    this.#count += lease.open;
    this.#options.keeper.add(lease);
  }

  /** A delivery is to start when there is room. */
  queue(held: HeldDelivery): void {
    this.#waiting.push(held);
  }

  /** Those to start next, at most so many; they wait still. */
  next(most: number): HeldDelivery[] {
    return this.#waiting.slice(0, most);
  }

  /** So many of them start. */
  started(count: number): void {
    if (count === 1) this.#waiting.shift();
    else this.#waiting.splice(0, count);
  }

  /** It is known what becomes of a delivery. */
  decide(held: HeldDelivery, verdict: Verdict, now: number, ranMs: number, outcome?: Outcome): void {
    this.outbox.add(held, verdict, now);
    this.#options.reports.finished(held, verdict, ranMs, outcome);
  }

  /** Gives back all that waits to start, and the last chance that was kept. */
  releaseWaiting(now: number): void {
    this.release(this.#waiting.splice(0), now);
    this.release(this.#options.lastChances.takeKept(), now);
  }

  /** Gives deliveries back unstarted. */
  release(unstarted: readonly HeldDelivery[], now: number): void {
    if (unstarted.length === 0) return;
    for (const held of unstarted) this.outbox.add(held, { kind: "release" }, now);
    this.#options.released(unstarted.length);
  }

  /** The broker answered verdicts. Answers in how many milliseconds the first of those to be retried comes again; `Infinity` when none does. */
  answered(taken: readonly OutgoingVerdict[], results: readonly SettleResult[]): number {
    let soonestMs = NEVER;
    for (let index = 0; index < taken.length; index++) {
      const { held, verdict } = taken[index] as OutgoingVerdict;
      if (results[index] !== "done") {
        this.lose(held);
        continue;
      }
      // It counts, even if the lease had been given up meanwhile.
      this.#options.reports.settled(held, verdict.kind);
      this.#end(held);
      if (verdict.kind === "retry") soonestMs = Math.min(soonestMs, verdict.delayMs);
    }
    return soonestMs;
  }

  /** A delivery's verdict can count no more, or was refused: its job comes back when its lease is over. */
  lose(held: HeldDelivery): void {
    if (held.over || this.#closed) return;
    this.#options.reports.lost(held);
    this.#end(held);
  }

  /** A lease is over: what waits under it is lost. */
  loseLease(lease: HeldLease): void {
    for (const held of this.#waiting.filter((one) => one.lease === lease)) {
      this.#waiting.splice(this.#waiting.indexOf(held), 1);
      this.lose(held);
    }
    for (const entry of this.outbox.dropLease(lease)) this.lose(entry.held);
    const { lastChances } = this.#options;
    if (lastChances.kept?.lease === lease) for (const held of lastChances.takeKept()) this.lose(held);
  }

  /** Nothing starts any more, and nothing goes back: what waits to start is lost. */
  loseWaiting(): void {
    for (const held of [...this.#waiting.splice(0), ...this.#options.lastChances.takeKept()]) this.lose(held);
  }

  /** What is not sent any more is lost: its jobs run again when their lease is over. */
  loseUnsent(): void {
    const unsent = this.outbox.take();
    this.outbox.answered(unsent);
    for (const { held } of unsent) this.lose(held);
  }

  /** The loop has ended: of what is held still it will never be known whether its verdicts count. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#options.reports.unsettled(this.#count);
    this.#count = 0;
  }

  #end(held: HeldDelivery): void {
    const { lastChances, keeper } = this.#options;
    held.over = true;
    lastChances.over(held);
    this.#count -= 1;
    held.lease.open -= 1;
    if (held.lease.open === 0) keeper.drop(held.lease);
  }
}
