/**
 * Defining a worker: its queues, their handlers and its options. What is defined here runs unchanged on every runtime.
 *
 * @module
 */
import { assertKnownFields } from "./known_fields.ts";
import { LONGEST_TIMER_MS, type ResolvedOptions, resolveOptions, type WorkerOptions } from "./options.ts";
import type { QueueHandler } from "./queue.ts";

const WORKER_FIELDS: ReadonlySet<string> = new Set<"queues" | keyof WorkerOptions>([
  "queues",
  "graceMs",
  "abortWaitMs",
  "settleWaitMs",
  "log",
]);

/** One queue of a worker, its options checked. */
export interface WorkerQueue {
  readonly handler: QueueHandler;
  readonly options: ResolvedOptions;
}

/** What a runtime starts. */
export interface WorkerDefinition {
  readonly kind: "eddy-worker";
  readonly queues: readonly WorkerQueue[];
  readonly graceMs: number;
  readonly abortWaitMs: number;
  readonly settleWaitMs: number;
  readonly log: WorkerOptions["log"];
}

/**
 * Defines a worker. Nothing starts and no I/O is done, so it can stand at module scope.
 *
 * @example
 * ```ts
 * const emails = queue("emails", { body: v.object({ to: v.string() }) });
 * export default defineWorker({ queues: [emails.handle(async (job) => { await send(job.body.to); })] });
 * ```
 *
 * @throws {TypeError} when no queue is given, or one twice, or an option is unknown.
 * @throws {RangeError} when an option cannot work; the message names the queue, the field and the mend.
 */
export function defineWorker(
  definition: { readonly queues: readonly QueueHandler[] } & WorkerOptions,
): WorkerDefinition {
  assertKnownFields("define a worker", "", definition, WORKER_FIELDS);
  if (!Array.isArray(definition.queues) || definition.queues.length === 0) {
    throw new TypeError("Cannot define a worker: queues is empty; give at least one queue with a handler");
  }
  if (definition.log !== undefined && typeof definition.log !== "function") {
    throw new TypeError(`Cannot define a worker: log is a ${typeof definition.log}; give a function`);
  }
  const names = new Set<string>();
  for (const handler of definition.queues) {
    if (typeof handler?.queue?.name !== "string" || handler.run === undefined) {
      throw new TypeError(
        "Cannot define a worker: an entry of queues has no handler; call .handle(…) on the queue",
      );
    }
    if (names.has(handler.queue.name)) {
      throw new TypeError(
        `Cannot define a worker: queue ${handler.queue.name} is given twice; give it one handler`,
      );
    }
    names.add(handler.queue.name);
  }
  return Object.freeze<WorkerDefinition>({
    kind: "eddy-worker",
    queues: Object.freeze(
      definition.queues.map((handler) => Object.freeze({ handler, options: resolveOptions(handler) })),
    ),
    graceMs: milliseconds("graceMs", definition.graceMs ?? 10_000),
    abortWaitMs: milliseconds("abortWaitMs", definition.abortWaitMs ?? 2_000),
    settleWaitMs: milliseconds("settleWaitMs", definition.settleWaitMs ?? 5_000),
    log: definition.log,
  });
}

function milliseconds(field: string, value: number): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0 || value > LONGEST_TIMER_MS) {
    const kind = typeof value === "number" ? String(value) : `a ${typeof value}`;
    throw new RangeError(
      `Cannot define a worker: ${field} is ${kind}; give whole milliseconds from 0 to ${LONGEST_TIMER_MS}`,
    );
  }
  return value;
}
