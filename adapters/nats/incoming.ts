/**
 * What the server sends, told apart: messages for our own inboxes, and all else, which is the client library's. Pure.
 *
 * The library's own way of a message, from its socket to whoever waits for it, takes longer than all else that is done for a short job.
 *
 * @module
 */
import { joined } from "./bytes.ts";

/** A message for one of our inboxes. */
export interface Incoming {
  readonly subject: string;
  /** Empty of one that nobody is to answer. */
  readonly reply: string;
  /** The protocol's own form, with the line before and the empty one behind; empty where there are none. */
  readonly headers: string;
  /** A part of what came, not a copy of it. */
  readonly data: Uint8Array;
}

/** What a message without a body tells of a request. */
export interface Status {
  readonly code: number;
  readonly description: string;
}

const decoder = new TextDecoder();

/** The longest line that is waited for, in bytes: what a server tells of itself may be long. */
const MAX_LINE_BYTES = 1024 * 1024;

const NEWLINE = 10;
const RETURN = 13;
const SPACE = 32;
const ZERO = 48;
const H = 72;
const M = 77;

/** One piece of what came: a line, or a line with a message behind. */
interface Piece {
  /** Where it ends; beyond what is there when more has to come. */
  readonly end: number;
  /** Whose it is; the library's where there is none. */
  readonly take: ((message: Incoming) => void) | undefined;
  /** Where its body begins. */
  readonly bodyAt: number;
}

export class IncomingReader {
  readonly #others: (bytes: Uint8Array) => void;
  readonly #inboxes = new Map<number, (message: Incoming) => void>();
  /** The beginning of what is not there as a whole yet, how long it is, and how long it has to be before it is worth looking again, in bytes. */
  #pieces: Uint8Array[] = [];
  #there = 0;
  #needed = 0;
  /** Whether this is no protocol that can be read: then all of it is the library's, which ends the connection. */
  #isLost = false;

  /** @param others is given whole lines and messages that are for none of our inboxes, in order. */
  constructor(others: (bytes: Uint8Array) => void) {
    this.#others = others;
  }

  /** Messages of the subscription with this number are for `take` from now on. */
  open(subscription: number, take: (message: Incoming) => void): void {
    this.#inboxes.set(subscription, take);
  }

  close(subscription: number): void {
    this.#inboxes.delete(subscription);
  }

  /** Takes in what came. Each message is given to its inbox before this returns. */
  read(bytes: Uint8Array): void {
    if (this.#isLost) return this.#others(bytes);
    let all = bytes;
    if (this.#there > 0) {
      this.#pieces.push(bytes);
      this.#there += bytes.length;
      if (this.#there < this.#needed) return;
      all = joined(this.#pieces, this.#there);
      this.#pieces = [];
      this.#there = 0;
    }
    let at = 0;
    /** Where what is the library's begins. */
    let from = 0;
    while (at < all.length) {
      const piece = this.#piece(all, at);
      if (piece === undefined) {
        this.#isLost = true;
        at = all.length;
        break;
      }
      if (piece.end > all.length) {
        this.#pieces = [all.subarray(at)];
        this.#there = all.length - at;
        this.#needed = piece.end - at;
        break;
      }
      if (piece.take !== undefined) {
        if (from < at) this.#others(all.subarray(from, at));
        from = piece.end;
        piece.take(messageOf(all, at, piece));
      }
      at = piece.end;
    }
    if (from < at) this.#others(all.subarray(from, at));
  }

  /** The piece that begins at a place; `undefined` when it is none that a server sends. */
  #piece(bytes: Uint8Array, at: number): Piece | undefined {
    const { length } = bytes;
    const first = bytes[at];
    if (first !== H && first !== M) {
      const newline = bytes.indexOf(NEWLINE, at);
      if (newline < 0) return this.#unfinished(length - at, length);
      return { end: newline + 1, take: undefined, bodyAt: newline + 1 };
    }
    // `HMSG subject number [reply] headers all` or `MSG subject number [reply] all`.
    let to = at;
    let spaces = 0;
    let numberAt = at;
    let last = at;
    let lastButOne = at;
    for (; to < length; to++) {
      const byte = bytes[to];
      if (byte === RETURN) break;
      if (byte !== SPACE) continue;
      spaces += 1;
      lastButOne = last;
      last = to;
      if (spaces === 2) numberAt = to + 1;
    }
    if (to + 1 >= length) return this.#unfinished(to - at, length);
    const size = wholeAt(bytes, last + 1, to);
    if (!(size >= 0) || spaces < (first === H ? 4 : 3)) return undefined;
    const bodyAt = to + 2;
    const end = bodyAt + size + 2;
    const take = this.#inboxes.get(wholeAt(bytes, numberAt, length));
    if (first === M) return { end, take, bodyAt };
    const headers = wholeAt(bytes, lastButOne + 1, last);
    return headers >= 0 && headers <= size ? { end, take, bodyAt: bodyAt + headers } : undefined;
  }

  #unfinished(lineBytes: number, length: number): Piece | undefined {
    if (lineBytes > MAX_LINE_BYTES) return undefined;
    return { end: length + 1, take: undefined, bodyAt: 0 };
  }
}

function messageOf(bytes: Uint8Array, at: number, { end, bodyAt }: Piece): Incoming {
  // Line and headers at once: to be called costs the runtime's decoder more than its work.
  const text = decoder.decode(bytes.subarray(at, bodyAt));
  const lineTo = text.indexOf("\r");
  const subjectAt = text.indexOf(" ") + 1;
  const subjectTo = text.indexOf(" ", subjectAt);
  const replyAt = text.indexOf(" ", subjectTo + 1) + 1;
  // Behind the reply, where there is one, stand one number or two.
  let replyTo = text.lastIndexOf(" ", lineTo);
  if (bytes[at] === H) replyTo = text.lastIndexOf(" ", replyTo - 1);
  return {
    subject: text.slice(subjectAt, subjectTo),
    reply: replyTo > replyAt ? text.slice(replyAt, replyTo) : "",
    headers: text.slice(lineTo + 2),
    data: bytes.subarray(bodyAt, end - 2),
  };
}

/** What the first line of a message's headers says; `undefined` of one that is no status. */
export function statusOf({ headers }: Incoming): Status | undefined {
  const status = /^NATS\/1\.0 (\d{3})[ \t]*([^\r\n]*)/.exec(headers);
  return status === null ? undefined : { code: Number(status[1]), description: status[2] as string };
}

/** The whole number from one place up to the next space or another; `NaN` when there is none. */
function wholeAt(bytes: Uint8Array, from: number, to: number): number {
  let value = 0;
  let at = from;
  for (; at < to; at++) {
    const byte = bytes[at] as number;
    if (byte === SPACE) break;
    if (byte < ZERO || byte > ZERO + 9) return Number.NaN;
    value = value * 10 + byte - ZERO;
  }
  return at === from ? Number.NaN : value;
}
