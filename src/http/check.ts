/**
 * Telling whether one of many raw bodies fits a queue, so that the others can be sent without it.
 *
 * @module
 */
import type { RawBody } from "../broker.ts";
import { faultOf } from "../fitting.ts";
import type { QueueDefinition } from "../queue.ts";

/** Why a body does not fit, or nothing when it does. The text names places, never values. */
export async function whyUnfit(queue: QueueDefinition, body: RawBody): Promise<string | undefined> {
  return (await faultOf(queue, body))?.reason;
}

/** Whether this is why a body does not fit: it is no JSON at all. */
export function isNoJson(why: string): boolean {
  return why.startsWith("Cannot read the body as JSON:");
}

/** The queue for bodies that {@linkcode whyUnfit} let pass: a schema that is asked a second time could answer otherwise. */
export function withoutSchema(queue: QueueDefinition): QueueDefinition {
  return { ...queue, schema: undefined };
}
