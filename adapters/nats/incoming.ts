/**
 * What the server sends, told apart: messages for our own inboxes, and all else, which is the client library's. Pure.
 *
 * The library's own way of a message, from its socket to whoever waits for it, takes longer than all else that is done for a short job.
 *
 * @module
 */

import { joined } from "../../src/bytes.ts";
import { Address } from "./address.ts";
import { bodyOf } from "./text.ts";

const decoder = new TextDecoder();

/** What is longer than this is not decoded with its headers, in bytes: each text cut out of the whole would keep it in memory. */
const SHORT_BYTES = 1024;

/** A message for one of our inboxes. It is a part of what came: what of it nobody asks for is never read. */
export class Incoming {
  readonly #bytes: Uint8Array;
  readonly #subjectAt: number;
  readonly #subjectTo: number;
  readonly #headersAt: number;
  readonly #bodyAt: number;
  readonly #end: number;
  /** Where it is to be answered; `undefined` of one that nobody is to answer. */
  readonly reply: Address | undefined;

  constructor(bytes: Uint8Array, head: Head) {
    this.#bytes = bytes;
    this.#subjectAt = head.subjectAt;
    this.#subjectTo = head.subjectTo;
    this.#headersAt = head.headersAt;
    this.#bodyAt = head.bodyAt;
    this.#end = head.end - 2;
    this.reply = head.replyTo > head.replyAt ? new Address(bytes, head.replyAt, head.replyTo) : undefined;
  }

  /** The same in bytes of its own. */
  detached(): Incoming {
    // Neither the line's first word nor the message's last line break is ever looked at.
    const from = this.#subjectAt;
    const length = this.#end + 2 - from;
    if (length >= this.#bytes.length / 2) return this;
    const bytes = this.#bytes.slice(from, from + length);
    return new Incoming(bytes, {
      end: length,
      take: undefined,
      subjectAt: 0,
      subjectTo: this.#subjectTo - from,
      replyAt: this.reply === undefined ? 0 : this.reply.from - from,
      replyTo: this.reply === undefined ? 0 : this.reply.to - from,
      headersAt: this.#headersAt - from,
      bodyAt: this.#bodyAt - from,
    });
  }

  get subject(): string {
    return this.#text(this.#subjectAt, this.#subjectTo);
  }

  /** The protocol's own form, with the line before and the empty one behind; empty where there are none. */
  get headers(): string {
    return this.#text(this.#headersAt, this.#bodyAt);
  }

  /** The body's bytes, as a part of what came. */
  get data(): Uint8Array {
    return this.#bytes.subarray(this.#bodyAt, this.#end);
  }

  /** The headers, and the body as its receiver's own: its text, or a copy of what is none. */
  read(): { readonly headers: string; readonly body: string | Uint8Array } {
    const length = this.#end - this.#headersAt;
    if (length <= SHORT_BYTES) {
      // Mostly both are ASCII, and the runtime's decoder takes longer to be called than to work.
      const text = this.#text(this.#headersAt, this.#end);
      const headersLength = this.#bodyAt - this.#headersAt;
      if (text.length === length && text.indexOf(UNREADABLE) < 0)
        return { headers: text.slice(0, headersLength), body: text.slice(headersLength) };
    }
    return { headers: this.headers, body: bodyOf(this.data) };
  }

  #text(from: number, to: number): string {
    return decoder.decode(this.#bytes.subarray(from, to));
  }
}

/** What the decoder puts in the place of bytes that are no text. */
const UNREADABLE = "\ufffd";

/** What a message without a body tells of a request. */
export interface Status {
  readonly code: number;
  readonly description: string;
}

/** The longest line that is waited for, in bytes: what a server tells of itself may be long. */
const MAX_LINE_BYTES = 1024 * 1024;

const NEWLINE = 10;
const RETURN = 13;
const SPACE = 32;
const ZERO = 48;
const H = 72;
const M = 77;

/** One piece of what came: a line, or a line with a message behind. Places are those of the bytes. */
interface Head {
  /** Where it ends; beyond what is there when more has to come. */
  readonly end: number;
  /** Whose it is; the library's where there is none. */
  readonly take: ((message: Incoming) => void) | undefined;
  readonly subjectAt: number;
  readonly subjectTo: number;
  /** Not before its end where there is none. */
  readonly replyAt: number;
  readonly replyTo: number;
  readonly headersAt: number;
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
      const head = this.#head(all, at);
      if (head === undefined) {
        this.#isLost = true;
        at = all.length;
        break;
      }
      const { end, take } = head;
      if (end > all.length) {
        this.#pieces = [all.subarray(at)];
        this.#there = all.length - at;
        this.#needed = end - at;
        break;
      }
      if (take !== undefined) {
        if (from < at) this.#others(all.subarray(from, at));
        from = end;
        take(new Incoming(all, head));
      }
      at = end;
    }
    if (from < at) this.#others(all.subarray(from, at));
  }

  /** The piece that begins at a place; `undefined` when it is none that a server sends. */
  #head(bytes: Uint8Array, at: number): Head | undefined {
    const { length } = bytes;
    const first = bytes[at];
    if (first !== H && first !== M) {
      const newline = bytes.indexOf(NEWLINE, at);
      return newline < 0 ? unfinished(length - at, length) : notOurs(newline + 1);
    }
    // `HMSG subject number [reply] headers all` or `MSG subject number [reply] all`.
    let to = at;
    let spaces = 0;
    let subjectTo = at;
    let subjectAt = at;
    let numberTo = at;
    let last = at;
    let lastButOne = at;
    for (; to < length; to++) {
      const byte = bytes[to];
      if (byte === RETURN) break;
      if (byte !== SPACE) continue;
      spaces += 1;
      lastButOne = last;
      last = to;
      if (spaces === 1) subjectAt = to + 1;
      else if (spaces === 2) subjectTo = to;
      else if (spaces === 3) numberTo = to;
    }
    if (to + 1 >= length) return unfinished(to - at, length);
    const size = wholeAt(bytes, last + 1, to);
    if (!(size >= 0) || spaces < (first === H ? 4 : 3)) return undefined;
    const headersAt = to + 2;
    const end = headersAt + size + 2;
    const take = this.#inboxes.get(wholeAt(bytes, subjectTo + 1, numberTo));
    const replyAt = numberTo + 1;
    if (first === M)
      return { end, take, subjectAt, subjectTo, replyAt, replyTo: last, headersAt, bodyAt: headersAt };
    const headers = wholeAt(bytes, lastButOne + 1, last);
    if (!(headers >= 0 && headers <= size)) return undefined;
    const bodyAt = headersAt + headers;
    return { end, take, subjectAt, subjectTo, replyAt, replyTo: lastButOne, headersAt, bodyAt };
  }
}

function unfinished(lineBytes: number, length: number): Head | undefined {
  return lineBytes > MAX_LINE_BYTES ? undefined : notOurs(length + 1);
}

function notOurs(end: number): Head {
  return {
    end,
    take: undefined,
    subjectAt: 0,
    subjectTo: 0,
    replyAt: 0,
    replyTo: 0,
    headersAt: 0,
    bodyAt: 0,
  };
}

/** What the first line of a message's headers says; `undefined` of one that is no status. */
export function statusOf({ headers }: Pick<Incoming, "headers">): Status | undefined {
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
