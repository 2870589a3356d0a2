/**
 * How a Worker asks a queue's object: one method, which names a queue and a verb of its broker.
 *
 * Errors travel as data, since of a thrown one little more than its text arrives.
 *
 * @module
 */
import type { BrokerLimits, BrokerQueue, QueueSettings } from "../../src/broker.ts";
import { BrokerError, BrokerRefusedError } from "../../src/errors.ts";

/** The broker's name, as its errors say it. */
export const OBJECT_BROKER = "durable-object";

/** What can be asked of a queue. */
export const OBJECT_VERBS = [
  "open",
  "enqueue",
  "claim",
  "settle",
  "renew",
  "exchange",
  "abandon",
  "sizes",
  "peek",
  "clear",
  "redrive",
  "pause",
  "resume",
] as const satisfies readonly (keyof BrokerQueue)[];

export type ObjectVerb = (typeof OBJECT_VERBS)[number];

/** One call: everything in it can be cloned. */
export interface ObjectCall {
  readonly queue: string;
  readonly settings: QueueSettings;
  readonly verb: ObjectVerb;
  readonly args: readonly unknown[];
}

export interface ObjectFailure {
  readonly kind: "refused" | "failed" | "range";
  readonly verb: string;
  readonly message: string;
}

export type ObjectAnswer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: ObjectFailure };

/** A queue's object, as its stub shows it. */
export interface QueueObjectStub {
  eddy(call: ObjectCall): Promise<ObjectAnswer>;
}

/**
 * The limits of a queue in an object. Smaller than SQLite's own elsewhere: an object has 128 MB for everything, a row 2 MB, and an answer
 * 32 MB.
 */
export function objectLimits(leaseMs: number): BrokerLimits {
  return Object.freeze<BrokerLimits>({
    maxBatch: 100,
    maxEnqueue: 1_000,
    maxInFlight: Number.POSITIVE_INFINITY,
    maxBodyBytes: 1_900_000,
    leaseMs,
    renewable: true,
    exclusive: false,
  });
}

/** What was thrown, as it travels. What nobody foresaw is told without its text, which could quote a body. */
export function failureOf(error: unknown, verb: string): ObjectFailure {
  if (error instanceof BrokerRefusedError)
    return { kind: "refused", verb: error.verb, message: error.message };
  if (error instanceof BrokerError) return { kind: "failed", verb: error.verb, message: error.message };
  if (error instanceof RangeError) return { kind: "range", verb, message: error.message };
  const name = error instanceof Error ? error.name : typeof error;
  return { kind: "failed", verb, message: `Cannot ${verb}: the queue's object failed inside (${name})` };
}

/** The error that a failure stands for. */
export function errorOf(failure: ObjectFailure): Error {
  if (failure.kind === "range") return new RangeError(failure.message);
  const kind = failure.kind === "refused" ? BrokerRefusedError : BrokerError;
  return new kind(OBJECT_BROKER, failure.verb, failure.message);
}
