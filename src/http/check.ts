/**
 * Telling whether a raw body fits a queue, before anything is sent.
 *
 * @module
 */
import type { RawBody } from "../broker.ts";
import { decodeBody } from "../codec.ts";
import type { QueueDefinition } from "../queue.ts";
import { whyNot } from "../schemas.ts";

/** Why a body does not fit, or nothing when it does. The text names places, never values. */
export async function whyUnfit(queue: QueueDefinition, body: RawBody): Promise<string | undefined> {
  let value: unknown;
  try {
    value = decodeBody(queue.codec, body);
  } catch (error) {
    if (error instanceof TypeError) return error.message;
    throw error;
  }
  return queue.schema === undefined ? undefined : await whyNot(queue.schema, value);
}

/** Whether this is why a body does not fit: it is no JSON at all. */
export function isNoJson(why: string): boolean {
  return why.startsWith("Cannot read the body as JSON:");
}

/** The queue for bodies that {@linkcode whyUnfit} let pass: a schema that is asked a second time could answer otherwise. */
export function withoutSchema(queue: QueueDefinition): QueueDefinition {
  return { ...queue, schema: undefined };
}
