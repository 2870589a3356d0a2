/**
 * Eddy: a queue worker for the edge.
 *
 * Name a queue, give it a handler, define a worker; a runtime starts it on a broker.
 *
 * @example
 * ```ts
 * import * as v from "valibot";
 * import { defineWorker, queue } from "eddy";
 *
 * const emails = queue("emails", { body: v.object({ to: v.pipe(v.string(), v.email()) }) });
 *
 * export default defineWorker({
 *   queues: [
 *     emails.handle(async (job) => { job.log.info("sending", { to: job.body.to.length }); }, { concurrency: 4, maxAttempts: 5 }),
 *   ],
 * });
 * ```
 *
 * @module
 */
export type {
  Broker,
  BrokerLimits,
  BrokerQueue,
  Capability,
  ClaimReply,
  ClaimRequest,
  Delivery,
  Enqueued,
  ExchangeReply,
  ExchangeRequest,
  JobState,
  NewJob,
  PeekedJob,
  Priority,
  QueueSettings,
  QueueSizes,
  RawBody,
  RenewResult,
  Settlement,
  SettleResult,
  Verdict,
  Watch,
} from "./broker.ts";
export type { Codec } from "./codec.ts";
export { type BudgetOptions, type DrainDeps, type DrainReport, drain } from "./drain.ts";
export {
  BrokerError,
  BrokerRefusedError,
  EnqueueError,
  InvalidBodyError,
  JobTimeoutError,
  LeaseLostError,
  PermanentError,
  QueueAbsentError,
  WorkerStoppedError,
} from "./errors.ts";
export type { EddyEvent, EventListener } from "./events.ts";
export type { Job, Log, LogLevel, LogSink, RetryOptions } from "./job.ts";
export {
  type BackoffOptions,
  type HandlerOptions,
  type ResolvedOptions,
  resolveOptions,
  type WorkerOptions,
} from "./options.ts";
export type { CancelTimer, Platform, PlatformLimits } from "./platform.ts";
export { AutoPrefetch } from "./prefetch.ts";
export { type EnqueueOptions, Producer, type ProducerDeps } from "./producer.ts";
export {
  type BatchHandler,
  type Handler,
  type QueueDefinition,
  type QueueHandler,
  type QueueOptions,
  queue,
} from "./queue.ts";
export type { BodyIssue, SchemaIssue, SchemaResult, StandardSchema } from "./schemas.ts";
export { type RunningWorker, startWorker, type WorkerDeps } from "./start.ts";
export type { QueueStats } from "./stats.ts";
export { defineWorker, type WorkerDefinition, type WorkerQueue } from "./worker.ts";
