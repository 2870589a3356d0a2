/**
 * A job as its handler sees it.
 *
 * @module
 */
import type { Priority } from "./broker.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";

/** Writes log lines. Lines of a job carry its queue, id and attempt by themselves, never its body. */
export interface Log {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

/** Where log lines go; a runtime gives one that prints. */
export type LogSink = (level: LogLevel, message: string, fields: Record<string, unknown>) => void;

export interface RetryOptions {
  /** Milliseconds until the job may come again; by default the queue's backoff decides. */
  readonly delayMs?: number;
  /** Why, for the dead letter should this have been the last attempt. */
  readonly reason?: string;
}

/** One delivery, given to a handler. */
export interface Job<Body = unknown> {
  readonly id: string;
  readonly queue: string;
  /** The lease this delivery came under; jobs of one claim share it. */
  readonly leaseId: string;
  /** The body, decoded and validated. */
  readonly body: Body;
  /** The body's exact text; throws a TypeError when its bytes are not UTF-8. */
  readonly text: string;
  /** The body's exact bytes. */
  readonly bytes: Uint8Array;
  /** 1 for the first. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** True when an earlier holder of this job vanished, so that the work may have been done in part. */
  readonly suspect: boolean;
  /** When the broker took it in, Unix milliseconds. */
  readonly enqueuedAt: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly priority: Priority;
  /**
   * Aborted when the job must not go on: `LeaseLostError`, `WorkerStoppedError` or `JobTimeoutError` is its reason. Give it to whatever
   * the handler waits for.
   */
  readonly signal: AbortSignal;
  /** Unix milliseconds by which the handler has to be done (its timeout or the drain's end); `Infinity` when nothing bounds it. */
  readonly deadline: number;
  readonly log: Log;
  /** The platform's `fetch`, counted against a drain's budget of requests, and aborted by {@linkcode Job.signal}. */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /**
   * Has the job come again once the handler returns. Charges the attempt: on the last one it becomes a dead letter instead. The last call of
   * `retry` and `deadLetter` counts.
   *
   * @throws {TypeError} when an option is unknown.
   * @throws {RangeError} when `delayMs` is not a whole number of milliseconds from 0 on.
   */
  retry(options?: RetryOptions): void;
  /** Sets the job aside among the dead letters once the handler returns. */
  deadLetter(reason: string): void;
}
