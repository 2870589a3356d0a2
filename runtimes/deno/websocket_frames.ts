/**
 * WebSocket frames (RFC 6455), as a client writes and reads them. Pure.
 *
 * @module
 */

import { joined } from "../../src/bytes.ts";

/** The largest message taken in, in bytes. A larger one ends the connection with code 1009. */
export const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

/** The longest reason of a close, in bytes. */
export const MAX_REASON_BYTES = 123;

const CONTINUATION = 0x0;
const TEXT = 0x1;
const BINARY = 0x2;
const CLOSE = 0x8;
const PING = 0x9;
const PONG = 0xa;

/** What a server said. */
export type Incoming =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "bytes"; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly kind: "ping"; readonly payload: Uint8Array<ArrayBuffer> }
  | { readonly kind: "pong" }
  /** `code` is 1005 where none was given. */
  | { readonly kind: "close"; readonly code: number; readonly reason: string };

/** The server broke the protocol, or said more than is taken in: the connection must end with `code`. */
export class FrameError extends Error {
  override name = "FrameError";
  readonly code: number;
  constructor(code: number, why: string) {
    super(why);
    this.code = code;
  }
}

/** The frame of a whole text message. `mask` is four random bytes, as of each client frame. */
export function textFrame(text: string, mask: Uint8Array): Uint8Array<ArrayBuffer> {
  return frame(TEXT, new TextEncoder().encode(text), mask);
}

/** The frame of a whole binary message. */
export function bytesFrame(bytes: Uint8Array, mask: Uint8Array): Uint8Array<ArrayBuffer> {
  return frame(BINARY, bytes, mask);
}

/** The answer to a ping. */
export function pongFrame(payload: Uint8Array, mask: Uint8Array): Uint8Array<ArrayBuffer> {
  return frame(PONG, payload, mask);
}

/** The frame that ends it; without a code it carries none. */
export function closeFrame(
  code: number | undefined,
  reason: string,
  mask: Uint8Array,
): Uint8Array<ArrayBuffer> {
  if (code === undefined) return frame(CLOSE, new Uint8Array(0), mask);
  const words = new TextEncoder().encode(reason);
  const payload = new Uint8Array(2 + words.length);
  new DataView(payload.buffer).setUint16(0, code);
  payload.set(words, 2);
  return frame(CLOSE, payload, mask);
}

function frame(opcode: number, payload: Uint8Array, mask: Uint8Array): Uint8Array<ArrayBuffer> {
  const { length } = payload;
  const head = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const bytes = new Uint8Array(head + 4 + length);
  const view = new DataView(bytes.buffer);
  bytes[0] = 0x80 | opcode;
  if (head === 2) bytes[1] = 0x80 | length;
  else if (head === 4) {
    bytes[1] = 0x80 | 126;
    view.setUint16(2, length);
  } else {
    bytes[1] = 0x80 | 127;
    view.setBigUint64(2, BigInt(length));
  }
  bytes.set(mask.subarray(0, 4), head);
  const start = head + 4;
  for (let i = 0; i < length; i += 1) bytes[start + i] = payload[i]! ^ mask[i & 3]!;
  return bytes;
}

/** One frame's head, read. */
interface Head {
  readonly final: boolean;
  readonly opcode: number;
  /** Where the payload begins, and how long it is, in bytes. */
  readonly start: number;
  readonly length: number;
}

/** Puts a server's messages together, from bytes that may be cut anywhere. */
export class MessageReader {
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  /** Whatever came and was not put together yet: kept apart until a whole frame is there, so that nothing is copied twice. */
  #chunks: Uint8Array<ArrayBuffer>[] = [];
  #there = 0;
  #parts: Uint8Array<ArrayBuffer>[] = [];
  #partsBytes = 0;
  #opcode: number | undefined;
  /** How many bytes are needed before it is worth looking again. */
  #needed = 2;

  /**
   * Takes bytes in, which are its own from then on; answers what is complete by now, in order.
   *
   * @throws {FrameError} when the connection must end. What was complete before is in no answer then.
   */
  push(chunk: Uint8Array<ArrayBuffer>): Incoming[] {
    this.#chunks.push(chunk);
    this.#there += chunk.length;
    if (this.#there < this.#needed) return [];
    this.#bytes = joined(this.#chunks, this.#there);
    const incoming: Incoming[] = [];
    let at = 0;
    for (;;) {
      const head = this.#head(at);
      if (head === undefined) break;
      const end = head.start + head.length;
      if (end > this.#there) {
        this.#needed = end - at;
        break;
      }
      const one = this.#take(head, this.#bytes.slice(head.start, end));
      if (one !== undefined) incoming.push(one);
      at = end;
      this.#needed = 2;
    }
    const rest = this.#bytes.subarray(at);
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#there = rest.length;
    return incoming;
  }

  #head(at: number): Head | undefined {
    const bytes = this.#bytes;
    const left = this.#there - at;
    if (left < 2) {
      this.#needed = 2;
      return undefined;
    }
    const first = bytes[at]!;
    const second = bytes[at + 1]!;
    if ((first & 0x70) !== 0) throw new FrameError(1002, "a frame has bits set that nobody agreed on");
    if ((second & 0x80) !== 0) throw new FrameError(1002, "a server's frame is masked");
    const opcode = first & 0x0f;
    const short = second & 0x7f;
    if (opcode >= CLOSE && (short > 125 || (first & 0x80) === 0)) {
      throw new FrameError(1002, "a control frame is too long or in parts");
    }
    const size = short < 126 ? 0 : short === 126 ? 2 : 8;
    if (left < 2 + size) {
      this.#needed = 2 + size;
      return undefined;
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    const length =
      size === 0 ? short : size === 2 ? view.getUint16(at + 2) : Number(view.getBigUint64(at + 2));
    if (length + this.#partsBytes > MAX_MESSAGE_BYTES) {
      throw new FrameError(1009, `a message is larger than ${MAX_MESSAGE_BYTES} bytes`);
    }
    return { final: (first & 0x80) !== 0, opcode, start: at + 2 + size, length };
  }

  #take(head: Head, payload: Uint8Array<ArrayBuffer>): Incoming | undefined {
    switch (head.opcode) {
      case PING:
        return { kind: "ping", payload };
      case PONG:
        return { kind: "pong" };
      case CLOSE:
        return closing(payload);
      case TEXT:
      case BINARY:
        if (this.#opcode !== undefined) throw new FrameError(1002, "a message begins within another");
        this.#opcode = head.opcode;
        break;
      case CONTINUATION:
        if (this.#opcode === undefined) throw new FrameError(1002, "a message goes on that did not begin");
        break;
      default:
        throw new FrameError(1002, "a frame is of an unknown kind");
    }
    this.#parts.push(payload);
    this.#partsBytes += payload.length;
    if (!head.final) return undefined;
    const bytes = joined(this.#parts, this.#partsBytes);
    const isText = this.#opcode === TEXT;
    this.#parts = [];
    this.#partsBytes = 0;
    this.#opcode = undefined;
    return isText ? { kind: "text", text: decoded(bytes) } : { kind: "bytes", bytes };
  }
}

function closing(payload: Uint8Array): Incoming {
  if (payload.length === 0) return { kind: "close", code: 1005, reason: "" };
  if (payload.length === 1) throw new FrameError(1002, "a close has half a code");
  const code = new DataView(payload.buffer, payload.byteOffset).getUint16(0);
  if (code < 1000 || code >= 5000 || code === 1004 || code === 1005 || code === 1006 || code === 1015) {
    throw new FrameError(1002, `a close has the code ${code}`);
  }
  return { kind: "close", code, reason: decoded(payload.subarray(2)) };
}

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new FrameError(1007, "a text is not UTF-8");
  }
}
