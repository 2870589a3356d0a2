/**
 * Redis's wire protocol (RESP2), both ways, byte-exact.
 *
 * Commands go out as one string each: what a JSON request brings are strings, and one native encoding of the whole is
 * several times faster than one an argument. Replies are decoded straight into what the HTTP answer needs (text or base64), so
 * no bytes are copied twice.
 *
 * @module
 */

/** One argument of a command. Bytes come only with a raw request body. */
export type Argument = string | Uint8Array;

/** An error that Redis answered, as opposed to one that was thrown. */
export class ReplyError {
  readonly message: string;
  constructor(message: string) {
    this.message = message;
  }
}

/** A reply, its strings already in the form the request asked for. Integers beyond 2^53 come as `bigint`. */
export type Reply = string | number | bigint | null | ReplyError | Reply[];

/**
 * How a reply's strings are to be written.
 *
 * - `text`: as UTF-8; bytes that are none become U+FFFD.
 * - `base64`: as base64 of their exact bytes, save for an `OK` status at `okDepth`, which Upstash leaves as it is and its
 *   client expects so.
 */
export interface ReplyForm {
  readonly base64: boolean;
  /** The nesting at which a status `OK` stands for a command's whole result: 0, or 1 within the reply of EXEC. */
  readonly okDepth: number;
}

/** One command as it goes over the wire: a string that is to be sent as UTF-8, or bytes. */
export function encodeCommand(args: readonly Argument[]): string | Uint8Array {
  let text = `*${args.length}\r\n`;
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] as Argument;
    if (typeof arg !== "string") return encodeBytes(args);
    text += `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`;
  }
  return text;
}

function encodeBytes(args: readonly Argument[]): Uint8Array {
  const parts: Buffer[] = [Buffer.from(`*${args.length}\r\n`)];
  for (const arg of args) {
    const bytes =
      typeof arg === "string" ? Buffer.from(arg) : Buffer.from(arg.buffer, arg.byteOffset, arg.length);
    parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from("\r\n"));
  }
  return Buffer.concat(parts);
}

/** What {@linkcode ReplyReader.read} answers while the next reply is not there in full. */
export const INCOMPLETE = Symbol("incomplete");

const CR = 13;
const NOTHING = Buffer.alloc(0);

interface OpenArray {
  readonly items: Reply[];
  readonly length: number;
}

/**
 * Reads replies out of chunks as they come. Elements of an array that are there are kept, so a large reply in many
 * chunks is decoded once.
 */
export class ReplyReader {
  #buffer: Buffer = NOTHING;
  #at = 0;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** How many bytes must be there before it is worth looking again. */
  #needed = 0;
  #open: OpenArray[] = [];

  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const left = this.#buffer.length - this.#at;
    if (left === 0 && this.#waitingBytes === 0) {
      this.#buffer = bytes;
      this.#at = 0;
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (left + this.#waitingBytes < this.#needed) return;
    this.#buffer = Buffer.concat([this.#buffer.subarray(this.#at), ...this.#waiting]);
    this.#at = 0;
    this.#waiting = [];
    this.#waitingBytes = 0;
  }

  /** The socket may reuse a chunk's memory: whatever is unread is copied. Called when the chunk was worked off. */
  keep(): void {
    this.#buffer = this.#at < this.#buffer.length ? Buffer.from(this.#buffer.subarray(this.#at)) : NOTHING;
    this.#at = 0;
    const last = this.#waiting.length - 1;
    if (last >= 0) this.#waiting[last] = Buffer.from(this.#waiting[last] as Buffer);
  }

  /** @throws {Error} when the bytes are no RESP2; the connection is of no use then. */
  read(form: ReplyForm): Reply | typeof INCOMPLETE {
    if (this.#waitingBytes > 0) return INCOMPLETE;
    for (;;) {
      let value = this.#element(form);
      if (value === INCOMPLETE) return INCOMPLETE;
      if (value === OPENED) continue;
      // A finished element may finish the arrays it stands in.
      for (;;) {
        const array = this.#open[this.#open.length - 1];
        if (array === undefined) return value as Reply;
        array.items.push(value as Reply);
        if (array.items.length < array.length) break;
        this.#open.pop();
        value = array.items;
      }
    }
  }

  #element(form: ReplyForm): Reply | typeof INCOMPLETE | typeof OPENED {
    const buffer = this.#buffer;
    const start = this.#at;
    const end = buffer.indexOf(CR, start);
    if (end < 0 || end + 1 >= buffer.length) {
      this.#needed = buffer.length - start + 1;
      return INCOMPLETE;
    }
    const next = end + 2;
    switch (buffer[start]) {
      case 0x24: {
        // $ a bulk string
        const length = integer(buffer, start + 1, end) as number;
        if (length < 0) {
          this.#at = next;
          return null;
        }
        if (next + length + 2 > buffer.length) {
          this.#needed = next + length + 2 - start;
          return INCOMPLETE;
        }
        this.#at = next + length + 2;
        return buffer.toString(form.base64 ? "base64" : "utf8", next, next + length);
      }
      case 0x3a: // : an integer
        this.#at = next;
        return integer(buffer, start + 1, end);
      case 0x2b: {
        // + a status
        this.#at = next;
        const status = buffer.toString("utf8", start + 1, end);
        if (!form.base64 || (status === "OK" && this.#open.length === form.okDepth)) return status;
        return buffer.toString("base64", start + 1, end);
      }
      case 0x2d: // - an error
        this.#at = next;
        return new ReplyError(buffer.toString("utf8", start + 1, end));
      case 0x2a: {
        // * an array
        const length = integer(buffer, start + 1, end) as number;
        this.#at = next;
        if (length < 0) return null;
        if (length === 0) return [];
        this.#open.push({ items: [], length });
        return OPENED;
      }
      default:
        throw new Error(
          "Cannot read from Redis: its answer is not RESP2; check that the port is a Redis port",
        );
    }
  }
}

const OPENED = Symbol("opened");

function integer(buffer: Buffer, from: number, to: number): number | bigint {
  let at = from;
  const negative = buffer[at] === 0x2d;
  if (negative) at += 1;
  if (to - at > 15) return BigInt(buffer.toString("latin1", from, to));
  let value = 0;
  for (; at < to; at++) value = value * 10 + ((buffer[at] as number) - 48);
  return negative ? -value : value;
}
