/**
 * The error classes that callers catch. Misuse throws built-ins instead (`TypeError`, `RangeError`). No message here carries a job's body,
 * a token or a URL's credentials.
 *
 * @module
 */
import type { BodyIssue } from "./schemas.ts";

export interface BrokerErrorOptions extends ErrorOptions {
  /** Default false. */
  readonly unchanged?: boolean;
}

/** A broker could not be asked, or answered with an error. Passing: the loop tries again with backoff. */
export class BrokerError extends Error {
  override name = "BrokerError";
  /** Which engine: `"redis"`, `"sqlite"`. */
  readonly broker: string;
  /** Which verb failed. */
  readonly verb: string;
  /** Whether it is certain that the verb changed nothing. False where it cannot be known, as of a reply that was lost. */
  readonly unchanged: boolean;

  constructor(broker: string, verb: string, message: string, options: BrokerErrorOptions = {}) {
    super(message, options);
    this.broker = broker;
    this.verb = verb;
    this.unchanged = options.unchanged ?? false;
  }
}

/**
 * The broker is set up, or behaved, so that jobs could be lost, or it does not let this worker in. Final: a worker does not start on it, and
 * a running one stops taking jobs.
 */
export class BrokerRefusedError extends BrokerError {
  override name = "BrokerRefusedError";
}

/** A queue that was only to be looked at (`create: false`) is not there. Nothing was made. */
export class QueueAbsentError extends BrokerRefusedError {
  override name = "QueueAbsentError";
}

/** The reason of an aborted `job.signal`: the lease ran out or was taken away. The job's verdict is not sent. */
export class LeaseLostError extends Error {
  override name = "LeaseLostError";
  readonly jobId: string;

  constructor(jobId: string, why: string) {
    super(`Lost the lease of job ${jobId}: ${why}`);
    this.jobId = jobId;
  }
}

/** The reason of an aborted `job.signal`: the worker is stopping and the grace time is over. */
export class WorkerStoppedError extends Error {
  override name = "WorkerStoppedError";
  constructor(why: string) {
    super(`The worker is stopping: ${why}`);
  }
}

/** The reason of an aborted `job.signal`: the handler ran longer than its `timeoutMs`. The job is retried. */
export class JobTimeoutError extends Error {
  override name = "JobTimeoutError";
  readonly timeoutMs: number;
  constructor(timeoutMs: number) {
    super(`The handler ran longer than its timeoutMs of ${timeoutMs}`);
    this.timeoutMs = timeoutMs;
  }
}

/**
 * Thrown by a handler when no further attempt can help: the job becomes a dead letter at once.
 *
 * @example
 * ```ts
 * if (response.status === 422) throw new PermanentError("the receiver refuses this payload");
 * ```
 */
export class PermanentError extends Error {
  override name = "PermanentError";
}

/** Whether a handler threw that no further attempt can help. What was thrown may be anything, one that cannot even be looked at too. */
export function isPermanent(thrown: unknown): boolean {
  try {
    return thrown instanceof PermanentError;
  } catch {
    return false;
  }
}

/**
 * Thrown by an enqueue, before anything is sent: a body that the queue's codec cannot hold, or that does not fit its schema. The sender's fault where the body
 * came from one, so a service answers with 422 and the message, which quotes nothing of the body.
 */
export class InvalidBodyError extends TypeError {
  override name = "InvalidBodyError";
  /** The queue's name. */
  readonly queue: string;
  /** Which of the jobs that were to be enqueued, from 0 on. */
  readonly index: number;
  /** Why, without the queue and the index: a sentence. */
  readonly reason: string;
  /** Where: one at least, 20 at most. */
  readonly issues: readonly BodyIssue[];

  constructor(queue: string, index: number, reason: string, issues: readonly BodyIssue[]) {
    super(`Cannot enqueue job ${index} to ${queue}: ${reason.replace(/^Cannot /, "cannot ")}`);
    this.queue = queue;
    this.index = index;
    this.reason = reason;
    this.issues = issues;
  }
}

/** An enqueue stopped part-way: the first `accepted` jobs are in the queue, of the next `uncertain` it is not known, the rest was not sent. */
export class EnqueueError extends Error {
  override name = "EnqueueError";
  readonly accepted: number;
  readonly uncertain: number;
  constructor(message: string, accepted: number, uncertain: number, options?: ErrorOptions) {
    super(message, options);
    this.accepted = accepted;
    this.uncertain = uncertain;
  }
}
