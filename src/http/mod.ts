/**
 * Eddy's HTTP app, made with Hono.
 *
 * @module
 */
export { type AppOptions, createApp } from "./app.ts";
export { assertToken, isLoopbackHost, isToken } from "./auth.ts";
export { DrainLock } from "./drain_lock.ts";
export {
  type AcceptedLine,
  type IngestFailure,
  type IngestOptions,
  type IngestStep,
  ingestLines,
  type RejectedLine,
} from "./ingest.ts";
