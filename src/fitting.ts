/**
 * Telling whether a raw body fits a queue, before anything is sent.
 *
 * @module
 */
import type { RawBody } from "./broker.ts";
import { decodeBody } from "./codec.ts";
import type { QueueDefinition } from "./queue.ts";
import { type BodyFault, whyNot } from "./schemas.ts";

/** Why a body cannot be read by a queue's codec, or does not fit its schema; nothing when it does. The texts name places, never values. */
export async function faultOf(queue: QueueDefinition, body: RawBody): Promise<BodyFault | undefined> {
  let value: unknown;
  try {
    value = decodeBody(queue.codec, body);
  } catch (error) {
    if (error instanceof TypeError) return wholeBody(error.message);
    throw error;
  }
  return queue.schema === undefined ? undefined : await whyNot(queue.schema, value);
}

/** A fault that is no single place's. */
export function wholeBody(reason: string): BodyFault {
  return { reason, issues: [{ path: "", message: reason }] };
}
