/**
 * What one queue's loop counts and tells.
 *
 * @module
 */
import type { ActiveJob } from "./active_job.ts";
import type { Verdict } from "./broker.ts";
import type { EddyEvent, Events } from "./events.ts";
import type { HeldDelivery } from "./held.ts";
import { Counters } from "./stats.ts";
import type { Outcome } from "./verdict.ts";

/** What is told of each job stands without a closure: mostly nobody listens. */
export class Reports {
  readonly counters = new Counters();
  readonly #queue: string;
  readonly #events: Events;

  constructor(queue: string, events: Events) {
    this.#queue = queue;
    this.#events = events;
  }

  claimed(leaseId: string, asked: number, got: number, tookMs: number): void {
    this.counters.claims += 1;
    this.counters.received += got;
    if (got === 0) this.counters.emptyClaims += 1;
    if (!this.#events.heard) return;
    this.#events.emit({ type: "claimed", queue: this.#queue, leaseId, asked, got, tookMs });
  }

  /** A handler is called with these jobs. */
  started(jobs: readonly ActiveJob[]): void {
    this.counters.started += jobs.length;
    if (!this.#events.heard) return;
    for (const { id: jobId, leaseId, attempt } of jobs) {
      this.#events.emit({ type: "started", queue: this.#queue, jobId, leaseId, attempt });
    }
  }

  /** @param outcome how its handler ended, if one was called. */
  finished(held: HeldDelivery, verdict: Verdict, ranMs: number, outcome: Outcome | undefined): void {
    if (!this.#events.heard) return;
    const { id: jobId, leaseId, attempt } = held.delivery;
    const asked = verdict.kind === "retry" && outcome?.kind === "retry";
    const told = verdict.kind === "retry" || verdict.kind === "dead" ? verdict.error : undefined;
    const error = asked && outcome.reason === undefined ? undefined : told;
    this.#events.emit({
      type: "finished",
      queue: this.#queue,
      jobId,
      leaseId,
      attempt,
      verdict: verdict.kind,
      ranMs,
      ...(error === undefined ? {} : { error }),
      ...(asked ? { asked } : {}),
    });
  }

  settled(held: HeldDelivery, kind: Verdict["kind"]): void {
    if (kind === "ack") this.counters.acked += 1;
    else if (kind === "retry") this.counters.retried += 1;
    else if (kind === "dead") this.counters.dead += 1;
    else this.counters.released += 1;
    if (!this.#events.heard) return;
    const { id: jobId, leaseId } = held.delivery;
    this.#events.emit({ type: "settled", queue: this.#queue, jobId, leaseId, verdict: kind });
  }

  lost(held: HeldDelivery): void {
    this.counters.lost += 1;
    const { id: jobId, leaseId } = held.delivery;
    this.#tell(() => ({ type: "lost", queue: this.#queue, jobId, leaseId, started: held.started }));
  }

  renewed(leaseIds: readonly string[], results: readonly ("held" | "lost")[]): void {
    const renewed = leaseIds.filter((_, index) => results[index] === "held");
    if (renewed.length === 0) return;
    this.counters.renewals += renewed.length;
    this.#tell(() => ({ type: "renewed", queue: this.#queue, leaseIds: renewed }));
  }

  brokerError(verb: string, error: Error, retryInMs: number | undefined): void {
    this.counters.brokerErrors += 1;
    this.#tell(() => ({ type: "brokerError", queue: this.#queue, verb, error, retryInMs }));
  }

  refused(error: Error): void {
    this.counters.brokerErrors += 1;
    this.#tell(() => ({ type: "refused", queue: this.#queue, error }));
  }

  idle(nextLookMs: number): void {
    this.#tell(() => ({ type: "idle", queue: this.#queue, nextLookMs }));
  }

  woken(): void {
    this.#tell(() => ({ type: "woken", queue: this.#queue }));
  }

  lastChance(held: HeldDelivery): void {
    this.#tell(() => ({ type: "lastChance", queue: this.#queue, jobId: held.delivery.id }));
  }

  abandoned(jobId: string): void {
    this.counters.abandoned += 1;
    this.#tell(() => ({ type: "abandoned", queue: this.#queue, jobId }));
  }

  /** The end of the loop: of these deliveries it will never be known whether their verdicts count. */
  unsettled(count: number): void {
    this.counters.lost += count;
  }

  #tell(make: () => EddyEvent): void {
    if (this.#events.heard) this.#events.emit(make());
  }
}
