/**
 * The slots of one queue: runs handlers and tells how each of their jobs ended. Knows nothing of the broker.
 *
 * @module
 */
import { ActiveJob, type InvalidBody, type JobContext } from "./active_job.ts";
import { Chain, Chained } from "./chain.ts";
import { isPermanent, JobTimeoutError, WorkerStoppedError } from "./errors.ts";
import type { HeldDelivery, HeldLease } from "./held.ts";
import type { Job } from "./job.ts";
import type { CancelTimer, Platform } from "./platform.ts";
import { isPromise } from "./promises.ts";
import type { QueueHandler } from "./queue.ts";
import type { Outcome } from "./verdict.ts";

/**
 * How long a handler may take to heed its timeout before its slot is taken from it, in milliseconds. One that never ends would have the slot for ever otherwise. Its job does not come
 * back sooner than its lease would have ended: until then no other call of it begins, though this one may go on.
 */
const TIMEOUT_HEED_MS = 2_000;

/** One slot's work: the jobs given to a handler together. */
export interface Run {
  readonly jobs: readonly ActiveJob[];
  readonly startedAt: number;
}

/** How many requests its handler made. */
export function fetchesOf(run: Run): number {
  return run.jobs.reduce((sum, job) => sum + job.fetches, 0);
}

export interface SlotsOptions {
  readonly platform: Platform;
  readonly run: QueueHandler["run"];
  readonly timeoutMs: number | undefined;
  readonly context: JobContext;
  /** A handler is about to be called with these jobs. */
  readonly started: (jobs: readonly ActiveJob[]) => void;
  /** A slot is free again. One outcome a job, in order. `left` when the handler still runs but was given up. */
  readonly ended: (run: Run, outcomes: readonly Outcome[], left: boolean) => void;
}

const RETURNED: Outcome = Object.freeze({ kind: "returned" });
const INTERRUPTED: Outcome = Object.freeze({ kind: "interrupted" });
const IGNORED: Outcome = Object.freeze({ kind: "ignored", delayMs: undefined, timeout: undefined });

class OpenRun extends Chained implements Run {
  readonly jobs: readonly ActiveJob[];
  readonly startedAt: number;
  cancelTimeout: CancelTimer | undefined;
  /** What is wrong with each job's body; none is known before all are checked. */
  faults: readonly (InvalidBody | undefined)[] = [];
  /** Whether the handler was called. */
  invoked = false;
  over = false;
  constructor(jobs: readonly ActiveJob[], startedAt: number) {
    super();
    this.jobs = jobs;
    this.startedAt = startedAt;
  }
}

export class Slots {
  readonly #options: SlotsOptions;
  readonly #runs = new Chain<OpenRun>();
  /** The starting times of all runs, summed up. */
  #startedAtSum = 0;

  constructor(options: SlotsOptions) {
    this.#options = options;
  }

  /** Slots in use. */
  get busy(): number {
    return this.#runs.size;
  }

  /** The jobs being run. */
  *jobs(): Iterable<ActiveJob> {
    for (const run of this.#runs.all()) yield* run.jobs;
  }

  /** The runs' starting times summed up as time on the way, in milliseconds. */
  runningForMs(now: number): number {
    return this.#runs.size * now - this.#startedAtSum;
  }

  /** Gives deliveries to the handler, together in one slot. `startedAt` is what the clock says. */
  start(group: readonly HeldDelivery[], startedAt: number): void {
    const { platform, context, timeoutMs } = this.#options;
    const jobs: ActiveJob[] = [];
    for (const held of group) jobs.push(new ActiveJob(held, context));
    const run = new OpenRun(jobs, startedAt);
    this.#runs.add(run);
    this.#startedAtSum += startedAt;
    if (timeoutMs !== undefined)
      run.cancelTimeout = platform.setTimer(timeoutMs, () => this.#timeOut(run, timeoutMs));
    let waits = false;
    const faults: ReturnType<ActiveJob["prepare"]>[] = [];
    for (const job of run.jobs) {
      const fault = job.prepare();
      if (isPromise(fault)) waits = true;
      faults.push(fault);
    }
    if (!waits) return this.#invoke(run, faults as (InvalidBody | undefined)[]);
    Promise.all(faults).then(
      (ready) => this.#invoke(run, ready),
      // prepare() never rejects; should it ever, the jobs must still be settled.
      (error: unknown) => this.#end(run, { kind: "threw", error }),
    );
  }

  /** Ends the runs whose bodies are still being checked: their handlers are not called any more. */
  interruptUnstarted(): void {
    for (const run of this.#runs.all()) if (!run.invoked) this.#end(run, INTERRUPTED);
  }

  /** Gives up the handlers that still run: they were told to stop and did not heed it. */
  leaveAll(): void {
    for (const run of this.#runs.all()) this.#end(run, IGNORED, true);
  }

  /** Aborts the jobs under a lease. */
  abortLease(lease: HeldLease, reason: (jobId: string) => Error): void {
    for (const run of this.#runs.all()) {
      for (const job of run.jobs) {
        if (job.held.lease === lease) job.abort(reason(job.id));
      }
    }
  }

  /** Aborts all jobs. */
  abortAll(reason: Error): void {
    for (const run of this.#runs.all()) {
      for (const job of run.jobs) job.abort(reason);
    }
  }

  #invoke(run: OpenRun, faults: readonly (InvalidBody | undefined)[]): void {
    // Given up while its bodies were checked.
    if (run.over) return;
    run.faults = faults;
    run.invoked = true;
    // Nor does a job start that was aborted meanwhile.
    const good: ActiveJob[] = [];
    for (let index = 0; index < run.jobs.length; index++) {
      const job = run.jobs[index] as ActiveJob;
      if (faults[index] === undefined && job.abortReason === undefined) good.push(job);
    }
    if (good.length === 0) {
      return this.#end(run, faults.every((fault) => fault !== undefined) ? RETURNED : INTERRUPTED);
    }
    const { run: handling } = this.#options;
    for (const { held } of good) held.started = true;
    this.#options.started(good);
    let result: unknown;
    try {
      result = handling.kind === "single" ? handling.handler(good[0] as Job) : handling.handler(good);
      if (!isPromise(result)) return this.#end(run, RETURNED);
    } catch (error) {
      return this.#end(run, { kind: "threw", error });
    }
    // What can be waited for need not be a promise: it may throw, or call back at once, or twice.
    Promise.resolve(result).then(
      () => this.#end(run, RETURNED),
      (error: unknown) => this.#end(run, { kind: "threw", error }),
    );
  }

  #end(run: OpenRun, outcome: Outcome, left = false): void {
    if (run.over) return;
    run.over = true;
    run.cancelTimeout?.();
    this.#runs.delete(run);
    // From 0 again when none is left, so that no rounding adds up.
    this.#startedAtSum = this.#runs.size === 0 ? 0 : this.#startedAtSum - run.startedAt;
    const single = this.#options.run.kind === "single";
    const outcomes: Outcome[] = [];
    for (const job of run.jobs) outcomes.push(ownOutcome(job, run.faults[outcomes.length], outcome, single));
    this.#options.ended(run, outcomes, left);
  }

  #timeOut(run: OpenRun, timeoutMs: number): void {
    const reason = new JobTimeoutError(timeoutMs);
    for (const job of run.jobs) job.abort(reason);
    // Its handler was not even called.
    if (!run.invoked) return this.#end(run, { kind: "threw", error: reason });
    // A handler that ignores its signal must not keep the slot for ever.
    run.cancelTimeout = this.#options.platform.setTimer(TIMEOUT_HEED_MS, () => {
      this.#end(run, { kind: "ignored", delayMs: undefined, timeout: reason }, true);
    });
  }
}

/** How one job ended whose run ended so; `single` when the run was this job's alone. */
function ownOutcome(job: ActiveJob, fault: InvalidBody | undefined, rest: Outcome, single: boolean): Outcome {
  if (fault !== undefined) return { kind: "dead", reason: fault.reason };
  const { mark } = job;
  // A final word counts more than a retry asked for before. A batch's throw is of the jobs that have no verdict yet.
  if (mark?.kind === "retry" && single && rest.kind === "threw" && isPermanent(rest.error)) return rest;
  // Its handler still runs, so that the retry it asked for has to wait for more than that.
  if (mark?.kind === "retry" && rest.kind === "ignored") return { ...rest, delayMs: mark.delayMs };
  if (mark !== undefined) return mark;
  // Whatever it throws once it was told to stop is taken for that, but for a word that is final.
  const interrupted = rest.kind === "threw" && !isPermanent(rest.error);
  if (interrupted && job.abortReason instanceof WorkerStoppedError) return INTERRUPTED;
  return rest;
}
