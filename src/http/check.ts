/**
 * Telling whether a raw body fits a queue, before anything is sent.
 *
 * @module
 */
import type { RawBody } from "../broker.ts";
import { decodeBody } from "../codec.ts";
import type { QueueDefinition } from "../queue.ts";
import { describeIssues } from "../schemas.ts";

/** Why a body does not fit, or nothing when it does. The text names places, never values. */
export async function whyUnfit(queue: QueueDefinition, body: RawBody): Promise<string | undefined> {
  let value: unknown;
  try {
    value = decodeBody(queue.codec, body);
  } catch (error) {
    if (error instanceof TypeError) return error.message;
    throw error;
  }
  if (queue.schema === undefined) return undefined;
  const result = await queue.schema["~standard"].validate(value);
  return result.issues === undefined ? undefined : describeIssues(result.issues);
}
