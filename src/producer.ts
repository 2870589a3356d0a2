/**
 * Enqueuing jobs, typed and checked.
 *
 * @module
 */
import { brokerBackoffMs } from "./backoff.ts";
import {
  type Broker,
  type BrokerQueue,
  type Enqueued,
  isHeaderName,
  isHeaderValue,
  isJobId,
  type NewJob,
  type Priority,
  type RawBody,
} from "./broker.ts";
import { byteLength, encodeBody } from "./codec.ts";
import { assertEngines } from "./deps.ts";
import { BrokerError, BrokerRefusedError, EnqueueError, InvalidBodyError } from "./errors.ts";
import { faultOf, wholeBody } from "./fitting.ts";
import { assertKnownFields, isRecord, kindOf } from "./known_fields.ts";
import type { Platform } from "./platform.ts";
import type { QueueDefinition } from "./queue.ts";
import { asError, withDeadline } from "./requests.ts";
import type { BodyFault } from "./schemas.ts";

export interface EnqueueOptions {
  /**
   * An id of your own: a second job of the same id within the queue's `dedupeWindowMs` is not added. 1 to 200 printable ASCII characters, no space, no `|`.
   */
  readonly id?: string | undefined;
  /** How long the job has to wait, in milliseconds. Default 0. */
  readonly delayMs?: number | undefined;
  /** Default `"normal"`. */
  readonly priority?: Priority | undefined;
  /** Lower-case names, printable ASCII values. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface ProducerDeps {
  readonly broker: Broker;
  readonly platform: Platform;
  /** How long one request may take, in milliseconds. Default 5,000. */
  readonly requestTimeoutMs?: number | undefined;
}

/** An enqueue whose answer was lost is sent again this often; the broker knows it by its request id. */
const TRIES = 3;
/** The most bytes of bodies one request carries, so that it stays below what servers take. */
const MAX_REQUEST_BYTES = 1_000_000;

const PRIORITIES: ReadonlySet<unknown> = new Set<Priority>(["high", "normal", "low"]);
const OPTION_FIELDS: ReadonlySet<string> = new Set<"body" | keyof EnqueueOptions>([
  "body",
  "id",
  "delayMs",
  "priority",
  "headers",
]);
const DEPS_FIELDS: ReadonlySet<string> = new Set<keyof ProducerDeps>([
  "broker",
  "platform",
  "requestTimeoutMs",
]);

/**
 * Enqueues jobs.
 *
 * @example
 * ```ts
 * const producer = new Producer({ broker, platform });
 * await producer.enqueue(emails, { to: "ada@example.com" }, { delayMs: 60_000 });
 * ```
 */
export class Producer {
  readonly #deps: ProducerDeps;
  readonly #queues = new Map<string, Promise<BrokerQueue>>();

  /** @throws {TypeError} when an option is unknown, or the broker or the platform is none. */
  constructor(deps: ProducerDeps) {
    assertKnownFields("make a producer", "", deps, DEPS_FIELDS);
    assertEngines("make a producer", deps);
    this.#deps = deps;
  }

  /**
   * Enqueues one job.
   *
   * @throws {InvalidBodyError} (a TypeError) when the body does not fit the queue's schema or codec; it says where.
   * @throws {TypeError} when an option cannot be used.
   * @throws {RangeError} when the body is larger than the broker takes.
   * @throws {EnqueueError} when the broker did not take it, or did not answer.
   * @throws {BrokerError} when the queue could not be opened, or the broker refuses us: nothing was enqueued.
   */
  async enqueue<Input>(
    queue: QueueDefinition<unknown, Input>,
    body: NoInfer<Input>,
    options: EnqueueOptions = {},
  ): Promise<Enqueued> {
    assertQueue(queue);
    if (!isRecord(options)) {
      throw new TypeError(`Cannot enqueue to ${queue.name}: options is ${kindOf(options)}; give an object`);
    }
    const results = await this.enqueueMany(queue, [{ ...options, body }]);
    return results[0] as Enqueued;
  }

  /**
   * Enqueues many jobs, in requests of as many as the broker takes at once. Nothing is sent when one of them is faulty; each request is all or none.
   *
   * @throws as {@linkcode Producer.enqueue}; the message names the faulty job's index, and an `EnqueueError` how many were accepted.
   */
  async enqueueMany<Input>(
    queue: QueueDefinition<unknown, Input>,
    jobs: readonly ({ readonly body: NoInfer<Input> } & EnqueueOptions)[],
  ): Promise<readonly Enqueued[]> {
    assertQueue(queue);
    assertList(queue.name, jobs);
    // All at once, before anything is waited for: what the caller does to a body afterwards must not change it.
    const raw = jobs.map((job, index) => {
      assertRecord(queue.name, index, job);
      const body = encoded(queue, index, job.body);
      return this.#newJob(queue.name, ownBytes(queue.name, index, body), job, index);
    });
    if (queue.schema !== undefined) {
      // What the worker will see is checked: a Date, say, is a text by then.
      for (const [index, { body }] of raw.entries()) await assertFits(queue, body, index);
    }
    return this.#send(queue, raw);
  }

  /**
   * Enqueues bodies given as exact text or bytes. They are decoded and checked as the worker will, and sent as they are.
   *
   * @throws as {@linkcode Producer.enqueueMany}.
   */
  async enqueueRaw(
    queue: QueueDefinition,
    jobs: readonly ({ readonly body: RawBody } & EnqueueOptions)[],
  ): Promise<readonly Enqueued[]> {
    assertQueue(queue);
    assertList(queue.name, jobs);
    const raw = jobs.map((job, index) => {
      assertRecord(queue.name, index, job);
      const { body } = job;
      if (typeof body !== "string" && !(body instanceof Uint8Array)) {
        refuse(queue.name, index, "body", `a ${typeof body}`, "give a string or a Uint8Array");
      }
      if (typeof body === "string" && !body.isWellFormed()) {
        const why = "body is no well-formed text; it holds half of a surrogate pair; mend it or give bytes";
        throw invalidBody(queue, index, wholeBody(why));
      }
      return this.#newJob(queue.name, ownBytes(queue.name, index, body), job, index);
    });
    for (const [index, { body }] of raw.entries()) await assertFits(queue, body, index);
    return this.#send(queue, raw);
  }

  #newJob(queue: string, body: RawBody, options: EnqueueOptions, index: number): NewJob {
    assertKnownFields(`enqueue job ${index} to ${queue}`, "", options, OPTION_FIELDS);
    const { id, delayMs = 0, priority = "normal", headers = {} } = options;
    if (id !== undefined && (typeof id !== "string" || !isJobId(id))) {
      refuse(
        queue,
        index,
        "id",
        typeof id === "string" ? `${id.length} characters` : `a ${typeof id}`,
        'use 1 to 200 printable ASCII characters, no space and no "|"',
      );
    }
    if (!Number.isSafeInteger(delayMs) || delayMs < 0) {
      refuse(
        queue,
        index,
        "delayMs",
        typeof delayMs === "number" ? String(delayMs) : `a ${typeof delayMs}`,
        "give whole milliseconds from 0 on",
      );
    }
    if (!PRIORITIES.has(priority))
      refuse(queue, index, "priority", `a ${typeof priority}`, 'use "high", "normal" or "low"');
    if (!isRecord(headers)) {
      refuse(queue, index, "headers", kindOf(headers), "give an object of names and values");
    }
    for (const [name, value] of Object.entries(headers)) {
      if (!isHeaderName(name))
        refuse(queue, index, "headers", "faulty in a name", 'use lower-case letters, digits, "_" and "-"');
      if (typeof value !== "string" || !isHeaderValue(value)) {
        refuse(
          queue,
          index,
          `headers.${name}`,
          `a ${typeof value}`,
          "give printable ASCII text, 4,000 characters at most",
        );
      }
    }
    return {
      id: id ?? this.#deps.platform.randomId(),
      body,
      headers: { ...headers },
      priority,
      delayMs,
      dedupe: id !== undefined,
    };
  }

  async #send(definition: QueueDefinition, jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    if (jobs.length === 0) return [];
    const queue = await this.#open(definition as QueueDefinition<unknown>);
    const sizes = jobs.map((job, index) => {
      const bytes = byteLength(job.body);
      if (bytes > queue.limits.maxBodyBytes) {
        throw new RangeError(
          `Cannot enqueue to ${queue.name}: the body of job ${index} is ${bytes} bytes; the ${this.#deps.broker.name} broker takes ${queue.limits.maxBodyBytes} at most: store the data elsewhere and enqueue where`,
        );
      }
      return bytes;
    });
    const done: Enqueued[] = [];
    while (done.length < jobs.length) {
      const chunk = nextChunk(jobs, sizes, done.length, queue.limits.maxEnqueue);
      const sent = await this.#enqueueChunk(queue, chunk);
      if (!("failed" in sent)) {
        done.push(...sent);
        continue;
      }
      const { failed, unchanged } = sent;
      // Thrown as it is, it means that nothing was enqueued: an earlier try whose answer was lost may have been.
      if (failed instanceof BrokerRefusedError && unchanged && done.length === 0) throw failed;
      const rest = unchanged ? "no other one was" : `whether the next ${chunk.length} were is not known`;
      throw new EnqueueError(
        `Cannot enqueue to ${queue.name}: ${failed.message} (${done.length} of ${jobs.length} jobs were accepted; ${rest})`,
        done.length,
        unchanged ? 0 : chunk.length,
        { cause: failed },
      );
    }
    return done;
  }

  /** What one request's jobs became; or why it failed, and whether it is certain that no try of it changed anything. */
  async #enqueueChunk(
    queue: BrokerQueue,
    chunk: readonly NewJob[],
  ): Promise<readonly Enqueued[] | { readonly failed: Error; readonly unchanged: boolean }> {
    const { broker, platform, requestTimeoutMs = 5_000 } = this.#deps;
    const requestId = platform.randomId();
    // Only where the request id keeps a second copy out may it be sent again.
    const tries = broker.capabilities.has("dedupe") ? TRIES : 1;
    let unchanged = true;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await withDeadline(
          platform,
          requestTimeoutMs,
          broker.name,
          "enqueue",
          queue.enqueue(requestId, chunk),
        );
      } catch (error) {
        // A job that the engine cannot take is found before anything is sent.
        unchanged &&=
          error instanceof BrokerRefusedError ||
          error instanceof RangeError ||
          (error instanceof BrokerError && error.unchanged);
        if (attempt >= tries || error instanceof BrokerRefusedError || error instanceof RangeError) {
          return { failed: asError(error), unchanged };
        }
        await new Promise<void>((resolve) => {
          platform.setTimer(brokerBackoffMs(attempt, platform.random()), resolve);
        });
      }
    }
  }

  #open(definition: QueueDefinition): Promise<BrokerQueue> {
    const { broker, platform, requestTimeoutMs = 5_000 } = this.#deps;
    const known = this.#queues.get(definition.name);
    if (known !== undefined) return known;
    const queue = broker.queue(definition.name, {
      leaseMs: 30_000,
      requestTimeoutMs,
      dedupeWindowMs: definition.dedupeWindowMs,
    });
    const opening = withDeadline(platform, requestTimeoutMs * 4, broker.name, "open", queue.open()).then(
      () => queue,
      (error: unknown) => {
        this.#queues.delete(definition.name);
        throw error;
      },
    );
    this.#queues.set(definition.name, opening);
    return opening;
  }
}

function nextChunk(jobs: readonly NewJob[], sizes: readonly number[], from: number, most: number): NewJob[] {
  let bytes = 0;
  let to = from;
  while (to < jobs.length && to - from < most) {
    bytes += sizes[to] as number;
    if (to > from && bytes > MAX_REQUEST_BYTES) break;
    to += 1;
  }
  return jobs.slice(from, to);
}

async function assertFits(queue: QueueDefinition, body: RawBody, index: number): Promise<void> {
  const fault = await faultOf(queue, body);
  if (fault !== undefined) throw invalidBody(queue, index, fault);
}

/** A job's body as the queue's codec writes it. */
function encoded(queue: Pick<QueueDefinition, "name" | "codec">, index: number, body: unknown): RawBody {
  try {
    return encodeBody(queue.codec, body);
  } catch (error) {
    throw invalidBody(queue, index, wholeBody((error as Error).message));
  }
}

function invalidBody({ name }: { readonly name: string }, index: number, fault: BodyFault): InvalidBodyError {
  return new InvalidBodyError(name, index, fault.reason, fault.issues);
}

/** A body that is the caller's no more. */
function ownBytes(queue: string, index: number, body: RawBody): RawBody {
  if (typeof body === "string") return body;
  try {
    return new Uint8Array(body);
  } catch {
    return refuse(
      queue,
      index,
      "body",
      "an array whose memory was given away",
      "enqueue it before that, or a copy",
    );
  }
}

function assertQueue(queue: unknown): void {
  const { name, codec } = (queue ?? {}) as { name?: unknown; codec?: unknown };
  if (typeof name === "string" && typeof codec === "string") return;
  throw new TypeError(`Cannot enqueue: the queue is ${kindOf(queue)}; give what queue("NAME") answered`);
}

function assertList(queue: string, jobs: unknown): void {
  if (Array.isArray(jobs)) return;
  throw new TypeError(`Cannot enqueue to ${queue}: jobs is ${kindOf(jobs)}; give a list of { body }`);
}

function assertRecord(queue: string, index: number, job: unknown): void {
  if (isRecord(job)) return;
  throw new TypeError(`Cannot enqueue job ${index} to ${queue}: it is ${kindOf(job)}; give { body }`);
}

function refuse(queue: string, index: number, field: string, is: string, mend: string): never {
  throw new TypeError(`Cannot enqueue job ${index} to ${queue}: ${field} is ${is}; ${mend}`);
}
