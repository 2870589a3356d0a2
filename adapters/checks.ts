/**
 * The checks of a constructor's options and of a verb's arguments that every adapter makes the same way, before anything is sent.
 * Each names the field, those of arguments by a `RangeError`; none repeats a body.
 *
 * @module
 */

import {
  type BrokerLimits,
  type ClaimRequest,
  isJobId,
  isQueueName,
  type NewJob,
  type QueueSettings,
  type RawBody,
} from "../src/broker.ts";
import { kindOf } from "../src/known_fields.ts";
import { LONGEST_TIMER_MS } from "../src/options.ts";

const MEMO = /^[\x20-\x7e]{0,256}$/;
const encoder = new TextEncoder();

/**
 * A constructor's options, for callers without types.
 *
 * @throws {TypeError} when they are no object.
 */
export function checkOptions(what: string, options: unknown, example: string): void {
  if (typeof options === "object" && options !== null) return;
  const found = options === null ? "null" : typeof options;
  throw new TypeError(`Cannot use ${what}: options is ${found}; give an object, as in ${example}`);
}

/** @throws {TypeError} when an option that must be a function is none. */
export function checkFunction(what: string, name: string, value: unknown, example: string): void {
  if (typeof value === "function") return;
  const found = value === null ? "null" : typeof value;
  throw new TypeError(`Cannot use ${what}: ${name} is ${found}; give a function, as in ${example}`);
}

/**
 * A text among a constructor's options that must be there.
 *
 * @throws {TypeError} when it is missing or of another kind, which is named: a `URL` prints like its text.
 */
export function checkText(what: string, name: string, value: unknown, mend: string): string {
  if (typeof value === "string") return value;
  throw new TypeError(
    `Cannot use ${what}: ${name} is ${value === undefined ? "missing" : kindOf(value)}; ${mend}`,
  );
}

/**
 * A whole number among a constructor's options, from `least` to `most`.
 *
 * @throws {TypeError} when it is no number; its kind is named, for `"5"` would read like one.
 * @throws {RangeError} when it is out of range.
 */
export function checkWhole(
  what: string,
  name: string,
  value: unknown,
  least: number,
  most = Number.MAX_SAFE_INTEGER,
): number {
  const isNumber = typeof value === "number";
  if (isNumber && Number.isSafeInteger(value) && value >= least && value <= most) return value;
  const range = most === Number.MAX_SAFE_INTEGER ? `from ${least} on` : `from ${least} to ${most}`;
  const text = `Cannot use ${what}: ${name} is ${isNumber ? value : kindOf(value)}; give a whole number ${range}`;
  throw isNumber ? new RangeError(text) : new TypeError(text);
}

/** A time in milliseconds that a timer is set to, from 1 on: as {@linkcode checkWhole}. A timer that is set to more fires at once. */
export function checkTimerMs(what: string, name: string, value: unknown): number {
  return checkWhole(what, name, value, 1, LONGEST_TIMER_MS);
}

/**
 * @throws {RangeError} when the name is no queue's name, a setting is not a positive whole number, or `requestTimeoutMs` is more than a timer can be
 * set to.
 */
export function checkQueue(name: string, settings: QueueSettings): void {
  if (!isQueueName(name)) {
    throw new RangeError(
      `Cannot open the queue: name is ${shown(name)}; it must be 1 to 100 of A-Z a-z 0-9 _ -`,
    );
  }
  for (const field of ["leaseMs", "requestTimeoutMs", "dedupeWindowMs"] as const) {
    const value = settings[field];
    if (!Number.isSafeInteger(value) || value < 1) {
      throw new RangeError(
        `Cannot open the queue ${name}: ${field} is ${typeof value === "number" ? value : kindOf(value)}; it must be an integer above 0`,
      );
    }
    if (field === "requestTimeoutMs" && value > LONGEST_TIMER_MS) {
      throw new RangeError(
        `Cannot open the queue ${name}: ${field} is ${value}; it must be at most ${LONGEST_TIMER_MS}`,
      );
    }
  }
}

/** @throws {RangeError} when `max` is outside of 1 to `maxBatch`, or the lease's id is none. */
export function checkClaim(request: ClaimRequest, limits: Pick<BrokerLimits, "maxBatch">): void {
  const { max, leaseId, waitMs } = request;
  if (!Number.isInteger(max) || max < 1 || max > limits.maxBatch) {
    throw new RangeError(
      `Cannot claim: max is ${max}; it must be an integer from 1 to maxBatch, which is ${limits.maxBatch}`,
    );
  }
  if (!isJobId(leaseId)) {
    throw new RangeError(
      `Cannot claim: leaseId is ${shown(leaseId)}; it must be 1 to 200 printable ASCII characters without space and |`,
    );
  }
  if (!(waitMs >= 0)) throw new RangeError(`Cannot claim: waitMs is ${waitMs}; it must be 0 or more`);
}

/** @throws {RangeError} when the jobs are too many, or one has a bad id or delay or too large a body. */
export function checkEnqueue(requestId: string, jobs: readonly NewJob[], limits: BrokerLimits): void {
  if (!isJobId(requestId)) {
    throw new RangeError(
      `Cannot enqueue: requestId is ${shown(requestId)}; it must be 1 to 200 printable ASCII characters without space and |`,
    );
  }
  if (jobs.length > limits.maxEnqueue) {
    throw new RangeError(
      `Cannot enqueue: there are ${jobs.length} jobs; one enqueue may carry at most maxEnqueue, which is ${limits.maxEnqueue}`,
    );
  }
  for (const job of jobs) {
    if (!isJobId(job.id)) {
      throw new RangeError(
        `Cannot enqueue: id is ${shown(job.id)}; it must be 1 to 200 printable ASCII characters without space and |`,
      );
    }
    if (!(job.delayMs >= 0 && job.delayMs <= Number.MAX_SAFE_INTEGER)) {
      throw new RangeError(`Cannot enqueue job ${job.id}: delayMs is ${job.delayMs}; it must be 0 or more`);
    }
    if (exceeds(job.body, limits.maxBodyBytes)) {
      throw new RangeError(
        `Cannot enqueue job ${job.id}: its body is larger than maxBodyBytes, which is ${limits.maxBodyBytes}`,
      );
    }
  }
}

/** @throws {RangeError} when the memo is longer than 256 characters or not printable ASCII. */
export function checkMemo(memo: string): void {
  if (!MEMO.test(memo)) {
    throw new RangeError(
      "Cannot remember: remember is not at most 256 printable ASCII characters; shorten it",
    );
  }
}

/** Whether a body has more than `maxBytes` bytes; encodes a text only where its length leaves it open. */
function exceeds(body: RawBody, maxBytes: number): boolean {
  if (typeof body !== "string") return body.byteLength > maxBytes;
  if (body.length * 3 <= maxBytes) return false;
  return body.length > maxBytes || encoder.encode(body).byteLength > maxBytes;
}

/** An argument as an error may show it: quoted, control characters escaped, and cut. */
function shown(text: unknown): string {
  return JSON.stringify(String(text).slice(0, 60));
}
