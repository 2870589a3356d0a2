/**
 * Naming a queue, typing its bodies, and giving it a handler.
 *
 * @module
 */
import { isQueueName } from "./broker.ts";
import type { Codec } from "./codec.ts";
import type { Job } from "./job.ts";
import { assertKnownFields, isRecord, kindOf } from "./known_fields.ts";
import type { HandlerOptions } from "./options.ts";
import type { StandardSchema } from "./schemas.ts";

/** Runs one job. Returning is success, a throw is a retry with backoff (see `PermanentError`). */
export type Handler<Body> = (job: Job<Body>) => unknown;

/**
 * Runs several jobs at once. Each job that calls `retry` or `deadLetter` has its own verdict; of the others, returning acks all and a throw
 * retries all.
 */
export type BatchHandler<Body> = (jobs: readonly Job<Body>[]) => unknown;

export interface QueueOptions<Body, Input = Body> {
  /**
   * Checks each body, when it is enqueued and before it is handled. Any Standard Schema. By default anything goes. What is enqueued is stored as it was given
   * (`Input`); a handler gets what the schema makes of it (`Body`).
   */
  readonly body?: StandardSchema<Input, Body>;
  /** How bodies are read. Default `"json"`. */
  readonly codec?: Codec;
  /** How long an id chosen at enqueue keeps a second job of that id out, in milliseconds. Default 600,000 (ten minutes). */
  readonly dedupeWindowMs?: number;
}

/** A queue's name together with the type of its bodies: as handlers get them, and as they are enqueued. */
export interface QueueDefinition<Body = unknown, Input = Body> {
  readonly name: string;
  readonly codec: Codec;
  readonly schema: StandardSchema<Input, Body> | undefined;
  readonly dedupeWindowMs: number;
  /** Gives the queue a handler that runs one job at a time in each slot. */
  handle(handler: Handler<Body>, options?: HandlerOptions): QueueHandler;
  /** Gives the queue a handler that runs up to `batchSize` jobs at a time in each slot. */
  handleBatch(handler: BatchHandler<Body>, options?: HandlerOptions & { batchSize?: number }): QueueHandler;
}

/** A queue with its handler, for `defineWorker`. */
export interface QueueHandler {
  readonly queue: QueueDefinition<unknown>;
  readonly run:
    | { readonly kind: "single"; readonly handler: Handler<unknown> }
    | { readonly kind: "batch"; readonly handler: BatchHandler<unknown>; readonly batchSize: number };
  readonly options: HandlerOptions;
}

const OPTION_FIELDS: ReadonlySet<string> = new Set<keyof QueueOptions<unknown>>([
  "body",
  "codec",
  "dedupeWindowMs",
]);

/**
 * Names a queue and types its bodies.
 *
 * @example
 * ```ts
 * import * as v from "valibot";
 * const emails = queue("emails", { body: v.object({ to: v.string() }) });
 * ```
 *
 * @param name 1 to 100 of `A-Z a-z 0-9 _ -`.
 * @throws {TypeError} when the name or an option cannot be used.
 */
export function queue<Body = unknown, Input = Body>(
  name: string,
  options: QueueOptions<Body, Input> = {},
): QueueDefinition<Body, Input> {
  if (typeof name !== "string" || !isQueueName(name)) {
    throw new TypeError(
      `Cannot name a queue: ${whyNoName(name)}; use 1 to ${LONGEST_NAME} of A-Z, a-z, 0-9, "_" and "-"`,
    );
  }
  assertKnownFields(`define queue ${name}`, "", options, OPTION_FIELDS);
  const codec = options.codec ?? "json";
  if (codec !== "json" && codec !== "text" && codec !== "bytes") {
    throw new TypeError(
      `Cannot define queue ${name}: codec is none of "json", "text", "bytes"; use one of them`,
    );
  }
  if (options.body !== undefined && typeof options.body?.["~standard"]?.validate !== "function") {
    throw new TypeError(
      `Cannot define queue ${name}: body is no Standard Schema; give one of valibot, zod or arktype`,
    );
  }
  const dedupeWindowMs = options.dedupeWindowMs ?? 600_000;
  if (!Number.isSafeInteger(dedupeWindowMs) || dedupeWindowMs < 1) {
    throw new TypeError(
      `Cannot define queue ${name}: dedupeWindowMs is ${dedupeWindowMs}; give whole milliseconds from 1 on`,
    );
  }
  const definition: QueueDefinition<Body, Input> = {
    name,
    codec,
    schema: options.body,
    dedupeWindowMs,
    handle(handler, handlerOptions = {}) {
      assertHandler(name, handler);
      return Object.freeze<QueueHandler>({
        queue: definition as unknown as QueueDefinition<unknown>,
        run: { kind: "single", handler: handler as unknown as Handler<unknown> },
        options: handlerOptions,
      });
    },
    handleBatch(handler, options = {}) {
      assertHandler(name, handler);
      if (!isRecord(options))
        throw new TypeError(`Cannot handle queue ${name}: options is ${kindOf(options)}; give an object`);
      const { batchSize = 16, ...handlerOptions } = options;
      if (!Number.isSafeInteger(batchSize) || batchSize < 1) {
        throw new TypeError(
          `Cannot handle queue ${name}: batchSize is ${batchSize}; give a whole number from 1 on`,
        );
      }
      return Object.freeze<QueueHandler>({
        queue: definition as unknown as QueueDefinition<unknown>,
        run: { kind: "batch", handler: handler as unknown as BatchHandler<unknown>, batchSize },
        options: handlerOptions,
      });
    },
  };
  return Object.freeze(definition);
}

/** The longest name, in characters. */
const LONGEST_NAME = 100;
/** What a message may repeat: letters, digits, punctuation and spaces, nothing that would steer a terminal. */
const SHOWABLE = /^[\p{L}\p{N}\p{P}\p{S} ]+$/u;

/** What is wrong with a queue's name. */
function whyNoName(name: unknown): string {
  if (typeof name !== "string") return `the name is ${kindOf(name)}`;
  if (name === "") return "the name is empty";
  if (name.length > LONGEST_NAME) return `the name is of ${name.length} characters`;
  return `${SHOWABLE.test(name) ? JSON.stringify(name) : "the name"} has a character that none may have`;
}

function assertHandler(name: string, handler: unknown): void {
  if (typeof handler !== "function") {
    throw new TypeError(`Cannot handle queue ${name}: the handler is a ${typeof handler}; give a function`);
  }
}
