/**
 * Reading request bodies that never grow past a limit, whatever the sender says of their length.
 *
 * @module
 */
import * as v from "valibot";
import { placeOf } from "../schemas.ts";
import { Refusal } from "./answers.ts";

/** The most that a request with options in JSON may be, in bytes. */
const MAX_OPTIONS_BYTES = 65_536;

/**
 * The chunks of a request's body. Leaving the loop early cancels the body.
 */
export async function* chunksOf(request: Request): AsyncGenerator<Uint8Array> {
  if (request.body === null) return;
  const reader = request.body.getReader();
  let whole = false;
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(cutOff);
      if (done) {
        whole = true;
        return;
      }
      yield value;
    }
  } finally {
    // A sender that is cut off may be gone already: then cancelling fails, and nothing is left to be done.
    if (!whole) await reader.cancel().catch(() => {});
  }
}

/** A sender that goes away in the middle is no fault of the server. */
function cutOff(): never {
  throw new Refusal(400, "cut-off", "Cannot read the body: its sender broke off in the middle");
}

/**
 * Reads a body whole.
 *
 * @throws {Refusal} 413 as soon as more than `maxBytes` have come.
 */
export async function readLimited(request: Request, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunksOf(request)) {
    size += chunk.byteLength;
    if (size > maxBytes) {
      throw new Refusal(413, "too-large", `Cannot take the body: it is above the limit of ${maxBytes} bytes`);
    }
    chunks.push(chunk);
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

/**
 * Reads options sent as JSON; an empty body means none.
 *
 * @param form what options there are, for the refusal.
 * @throws {Refusal} 400 when it is no JSON object, 422 when a field does not fit, 413 when it is too large.
 */
export async function readOptions<S extends v.GenericSchema>(
  request: Request,
  schema: S,
  form: string,
): Promise<v.InferOutput<S>> {
  const bytes = await readLimited(request, MAX_OPTIONS_BYTES);
  let value: unknown = {};
  try {
    // Bytes that are no UTF-8 must not turn into some other id or name.
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (text.trim() !== "") value = JSON.parse(text);
  } catch {
    throw new Refusal(400, "malformed-json", "Cannot read the request's options: they are not JSON");
  }
  // An array without elements would pass for options of which none is given.
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Refusal(400, "malformed-json", "Cannot read the request's options: they are not a JSON object");
  }
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  const places = result.issues.slice(0, 5).map((issue) => placeOf(issue));
  throw new Refusal(
    422,
    "invalid-options",
    `Cannot use the request's options: these do not fit: ${[...new Set(places)].join(", ")}; ${form}`,
  );
}
