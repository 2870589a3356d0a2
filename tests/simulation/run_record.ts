/**
 * The record of one job given to a handler: how it ended, and when it was told to stop.
 *
 * @module
 */
import { JobTimeoutError, WorkerStoppedError } from "../../src/errors.ts";
import type { Job } from "../../src/job.ts";
import type { Machine } from "./machine.ts";
import type { QueueModel } from "./model.ts";
import type { Fail } from "./violation.ts";

/** The jobs that a handler was given together, by id. */
export type Run = Map<string, RunRecord>;

export type Ending = "returned" | "threw" | "permanent" | "retry" | "dead";

export class RunRecord {
  readonly #job: Job;
  readonly #machine: Machine;
  readonly #model: QueueModel;
  readonly #fail: Fail;
  readonly #startedAt: number;
  /** When it started: after how many starts and claims' answers. */
  readonly order: number;
  #looks = false;
  #left = false;
  #abortedAt: number | undefined;
  outcome: Ending | undefined;
  /** Whether the worker's stop had told it to stop before it threw. */
  interrupted = false;
  /** Whether its time had run out before it ended. */
  #timedOut = false;

  constructor(job: Job, machine: Machine, model: QueueModel, order: number, fail: Fail) {
    this.#job = job;
    this.#machine = machine;
    this.#model = model;
    this.order = order;
    this.#fail = fail;
    this.#startedAt = machine.trueNow();
  }

  /** The handler looks at its signal: from now on it is known when it is told to stop. */
  look(): AbortSignal {
    const { signal } = this.#job;
    if (this.#looks) return signal;
    this.#looks = true;
    const aborted = () => {
      if (!this.#machine.alive) return;
      this.#abortedAt = this.#machine.trueNow();
      if (signal.reason instanceof JobTimeoutError) this.#timedOut = true;
      if (this.outcome === undefined) this.#checkInTime(this.#abortedAt);
    };
    if (signal.aborted) aborted();
    else signal.addEventListener("abort", aborted);
    return signal;
  }

  /** The loop waits for its handler no longer. */
  left(): void {
    this.#left = true;
  }

  end(outcome: Ending): void {
    // Whatever a handler left behind ends as, nobody hears of it.
    if (this.#left) return;
    this.outcome = outcome;
    const { signal } = this.#job;
    this.interrupted = outcome === "threw" && signal.aborted && signal.reason instanceof WorkerStoppedError;
    if (this.#looks && this.#abortedAt === undefined) this.#checkInTime(this.#machine.trueNow());
  }

  /** Whether its end is a failed attempt. A handler that was left behind has failed, too. */
  get failed(): boolean {
    const { outcome } = this;
    return (
      (outcome === "threw" && !this.interrupted) ||
      outcome === "retry" ||
      (outcome === undefined && (this.#left || this.#gaveUp()))
    );
  }

  mayDie(attempt: number, maxAttempts: number): boolean {
    if (this.outcome === "permanent" || this.outcome === "dead") return true;
    return this.failed && attempt >= maxAttempts;
  }

  /** Whether its handler still runs and was not left behind. */
  get running(): boolean {
    return !this.#left && this.outcome === undefined;
  }

  describe(): string {
    const end = this.outcome === undefined ? "its handler has not ended" : `its handler ${this.outcome}`;
    return `${end}${this.interrupted ? ", interrupted" : ""}`;
  }

  checkAtEnd(): void {
    if (!this.#machine.alive || this.outcome !== undefined || !this.#looks) return;
    if (this.#abortedAt === undefined) this.#checkInTime(this.#machine.trueNow());
  }

  #gaveUp(): boolean {
    return this.#timedOut || (this.#job.signal.aborted && this.#job.signal.reason instanceof JobTimeoutError);
  }

  /** By `at` the handler was told, or had ended: the broker must not have given its job away yet. */
  #checkInTime(at: number): void {
    const lease = this.#model.leases.get(this.#job.leaseId);
    if (lease === undefined || at <= lease.deadline) return;
    // A machine that stood still could tell nobody.
    const watchedFrom = Math.max(this.#startedAt, lease.deadline - (lease.deadline - this.#startedAt) / 5);
    if (this.#machine.pausedBetween(Math.min(watchedFrom, lease.deadline - 100), at) > 0) return;
    const slot = [...lease.slots.values()].find((one) => one.job.id === this.#job.id);
    if (slot?.state === "done") return;
    this.#fail(
      "lateAbort",
      `job ${this.#job.id} ran on until ${at}; its lease ${lease.id} ended at ${lease.deadline}`,
    );
  }
}
