/**
 * Between a job's raw body and the value a handler sees.
 *
 * @module
 */
import type { RawBody } from "./broker.ts";

/** How a queue's bodies are read: as JSON values, as text, or as bytes left alone. */
export type Codec = "json" | "text" | "bytes";

const encoder = new TextEncoder();
const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The body's exact bytes. */
export function toBytes(body: RawBody): Uint8Array {
  return typeof body === "string" ? encoder.encode(body) : body;
}

/**
 * The body's exact text.
 *
 * @throws {TypeError} when the bytes are not UTF-8.
 */
export function toText(body: RawBody): string {
  if (typeof body === "string") return body;
  try {
    return strictDecoder.decode(body);
  } catch {
    throw new TypeError('Cannot read the body as text: its bytes are not UTF-8; use the codec "bytes"');
  }
}

/** How many bytes the body has, without making them where that can be told. */
export function byteLength(body: RawBody): number {
  if (typeof body !== "string") return body.byteLength;
  // One UTF-16 unit is at most three bytes of UTF-8; a string of ASCII is as long as it looks. Only measure when it matters.
  return encoder.encode(body).byteLength;
}

/**
 * Makes a raw body of a value.
 *
 * @throws {TypeError} when the value has no form in this codec.
 */
export function encodeBody(codec: Codec, value: unknown): RawBody {
  switch (codec) {
    case "json": {
      let text: string | undefined;
      try {
        text = JSON.stringify(value);
      } catch {
        // The engine's own message can quote keys of the value, and a toJSON's anything: neither is passed on.
        throw new TypeError(
          "Cannot enqueue a body: it has no JSON form (a cycle or a BigInt); enqueue plain data",
        );
      }
      if (text === undefined) {
        throw new TypeError(
          `Cannot enqueue a body: its kind is ${typeof value}, which has no JSON form; enqueue plain data`,
        );
      }
      return text;
    }
    case "text":
      if (typeof value !== "string") {
        throw new TypeError(
          `Cannot enqueue a body as text: its kind is ${typeof value}; give a string or use the codec "json"`,
        );
      }
      if (!value.isWellFormed()) {
        throw new TypeError(
          "Cannot enqueue a body as text: it holds half of a surrogate pair, which has no UTF-8 form; mend the string or enqueue bytes",
        );
      }
      return value;
    case "bytes":
      if (!(value instanceof Uint8Array)) {
        throw new TypeError(`Cannot enqueue a body as bytes: its kind is ${typeof value}; give a Uint8Array`);
      }
      return value;
  }
}

/**
 * Reads a raw body.
 *
 * @throws {TypeError} when it cannot be read in this codec; the text never quotes the body.
 */
export function decodeBody(codec: Codec, body: RawBody): unknown {
  switch (codec) {
    case "json": {
      const text = toText(body);
      try {
        return JSON.parse(text);
      } catch {
        // The engine's message quotes the text around the fault, so it is not passed on.
        throw new TypeError(
          "Cannot read the body as JSON: it is malformed; enqueue JSON or use another codec",
        );
      }
    }
    case "text":
      return toText(body);
    case "bytes":
      return toBytes(body);
  }
}
