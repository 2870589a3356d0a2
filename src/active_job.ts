/**
 * One delivery while its handler has it: the {@linkcode Job} the handler sees, and how it ended.
 *
 * @module
 */

import type { Priority } from "./broker.ts";
import { decodeBody, toBytes, toText } from "./codec.ts";
import type { HeldDelivery } from "./held.ts";
import type { Job, Log, LogLevel, LogSink, RetryOptions } from "./job.ts";
import { assertKnownFields } from "./known_fields.ts";
import type { Platform } from "./platform.ts";
import { ignoreRejection, isPromise } from "./promises.ts";
import type { QueueDefinition } from "./queue.ts";
import { complaintOf, SCHEMA_THREW, type SchemaResult } from "./schemas.ts";
import type { Outcome } from "./verdict.ts";

const RETRY_FIELDS: ReadonlySet<string> = new Set<keyof RetryOptions>(["delayMs", "reason"]);

/** What all jobs of one queue share. */
export interface JobContext {
  readonly platform: Platform;
  readonly queue: QueueDefinition;
  readonly maxAttempts: number;
  readonly log: LogSink | undefined;
  /** Unix milliseconds by which a job started now has to be done. */
  deadline(): number;
  /** Called before each request of a handler. Throws when the budget has no room for it. */
  beforeFetch(): void;
}

/** The body could not be decoded or does not fit the schema. The message never quotes it. */
export class InvalidBody {
  readonly reason: string;
  constructor(reason: string) {
    this.reason = reason;
  }
}

export class ActiveJob implements Job<unknown> {
  readonly #held: HeldDelivery;
  readonly deadline: number;
  readonly #context: JobContext;
  #body: unknown;
  #controller: AbortController | undefined;
  #abortReason: Error | undefined;
  #mark: Outcome | undefined;
  #fetches = 0;

  constructor(held: HeldDelivery, context: JobContext) {
    this.#held = held;
    this.#context = context;
    this.deadline = context.deadline();
  }

  /** What is held under the lease. Out of a handler's reach, which gets this very object. */
  get held(): HeldDelivery {
    return this.#held;
  }

  /** Requests its handler made. */
  get fetches(): number {
    return this.#fetches;
  }

  get id(): string {
    return this.#held.delivery.id;
  }
  get queue(): string {
    return this.#context.queue.name;
  }
  get leaseId(): string {
    return this.#held.delivery.leaseId;
  }
  get body(): unknown {
    return this.#body;
  }
  get text(): string {
    return toText(this.#held.delivery.body);
  }
  get bytes(): Uint8Array {
    return toBytes(this.#held.delivery.body);
  }
  get attempt(): number {
    return this.#held.delivery.attempt;
  }
  get maxAttempts(): number {
    return this.#context.maxAttempts;
  }
  get suspect(): boolean {
    return this.#held.delivery.suspect;
  }
  get enqueuedAt(): number {
    return this.#held.delivery.enqueuedAt;
  }
  get headers(): Readonly<Record<string, string>> {
    return this.#held.delivery.headers;
  }
  get priority(): Priority {
    return this.#held.delivery.priority;
  }

  get signal(): AbortSignal {
    // Made when first asked for: most handlers never do.
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#abortReason !== undefined) this.#controller.abort(this.#abortReason);
    }
    return this.#controller.signal;
  }

  get log(): Log {
    const write = (level: LogLevel) => (message: string, fields?: Record<string, unknown>) => {
      try {
        const told = { queue: this.queue, job: this.id, attempt: this.attempt, ...fields };
        ignoreRejection(this.#context.log?.(level, message, told));
      } catch {
        // A log that cannot be written must not cost a job.
      }
    };
    return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
  }

  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    try {
      this.#context.beforeFetch();
    } catch (error) {
      return Promise.reject(error);
    }
    this.#fetches += 1;
    const own = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    const signal = own ? AbortSignal.any([own, this.signal]) : this.signal;
    return this.#context.platform.fetch(input, { ...init, signal });
  }

  retry(options: RetryOptions = {}): void {
    assertKnownFields(`retry job ${this.id}`, "", options, RETRY_FIELDS);
    const { delayMs, reason } = options;
    if (delayMs !== undefined && (!Number.isSafeInteger(delayMs) || delayMs < 0)) {
      throw new RangeError(
        `Cannot retry job ${this.id}: delayMs is ${String(delayMs)}; give whole milliseconds from 0 on`,
      );
    }
    this.#mark = { kind: "retry", delayMs, reason: reason === undefined ? undefined : String(reason) };
  }

  deadLetter(reason: string): void {
    this.#mark = { kind: "dead", reason: String(reason) };
  }

  /** What the handler decided by itself, if it did. */
  get mark(): Outcome | undefined {
    return this.#mark;
  }

  /** Why it was aborted, if it was. */
  get abortReason(): Error | undefined {
    return this.#abortReason;
  }

  /** Aborts the handler's signal; the first reason stays. */
  abort(reason: Error): void {
    if (this.#abortReason !== undefined) return;
    this.#abortReason = reason;
    this.#controller?.abort(reason);
  }

  /**
   * Reads and checks the body.
   *
   * @returns `undefined` when it is good, the fault when it is not; a promise of either where the schema answers with one.
   */
  prepare(): InvalidBody | undefined | Promise<InvalidBody | undefined> {
    const { codec, schema } = this.#context.queue;
    let value: unknown;
    try {
      value = decodeBody(codec, this.#held.delivery.body);
    } catch (error) {
      return new InvalidBody((error as Error).message);
    }
    if (schema === undefined) {
      this.#body = value;
      return undefined;
    }
    const accept = (result: SchemaResult<unknown>): InvalidBody | undefined => {
      const complaint = complaintOf(result);
      if (complaint !== undefined) return new InvalidBody(complaint);
      this.#body = (result as { readonly value: unknown }).value;
      return undefined;
    };
    const faulty = () => new InvalidBody(SCHEMA_THREW);
    try {
      const result = schema["~standard"].validate(value);
      return isPromise(result) ? Promise.resolve(result).then(accept).catch(faulty) : accept(result);
    } catch {
      return faulty();
    }
  }
}
