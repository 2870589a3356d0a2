/**
 * The reply subject of a JetStream delivery, in which the server tells what it knows of it. Pure.
 *
 * @module
 */

const PREFIX = "$JS.ACK.";
const NS_PER_MS = 1_000_000;

/** Of most jobs only the two numbers are ever asked for, so the rest is read when it is. */
export class DeliveryInfo {
  readonly #reply: string;
  /** Where the stream's name, and the time, begin. */
  readonly #streamAt: number;
  readonly #timeAt: number;
  /** How often the server has handed it out: 1 for the first. */
  readonly delivered: number;
  readonly streamSequence: number;

  constructor(reply: string, streamAt: number, timeAt: number, delivered: number, streamSequence: number) {
    this.#reply = reply;
    this.#streamAt = streamAt;
    this.#timeAt = timeAt;
    this.delivered = delivered;
    this.streamSequence = streamSequence;
  }

  get stream(): string {
    return tokenAt(this.#reply, this.#streamAt);
  }

  /** When it was stored, Unix nanoseconds as 19 digits: so they compare as texts. */
  get storedNs(): string {
    return tokenAt(this.#reply, this.#timeAt).padStart(19, "0");
  }

  /** The same in whole milliseconds. */
  get storedMs(): number {
    return Math.floor(numberAt(this.#reply, this.#timeAt) / NS_PER_MS);
  }
}

/** Reads `$JS.ACK.…`, in its older form of nine tokens or its newer one of eleven or more; `undefined` of anything else. */
export function parseAckSubject(reply: string): DeliveryInfo | undefined {
  if (!reply.startsWith(PREFIX)) return undefined;
  let tokens = 1;
  for (let dot = reply.indexOf("."); dot >= 0; dot = reply.indexOf(".", dot + 1)) tokens += 1;
  if (tokens < 9) return undefined;
  let at = PREFIX.length;
  // The newer form has a domain and an account between the prefix and the stream.
  if (tokens > 9) at = next(reply, next(reply, at));
  const streamAt = at;
  // Behind the stream comes the consumer.
  at = next(reply, next(reply, at));
  const delivered = numberAt(reply, at);
  at = next(reply, at);
  const streamSequence = numberAt(reply, at);
  // Behind the stream's sequence comes the consumer's.
  const timeAt = next(reply, next(reply, at));
  if (!(delivered >= 1) || !(streamSequence >= 1)) return undefined;
  return new DeliveryInfo(reply, streamAt, timeAt, delivered, streamSequence);
}

/** Where the token behind the one at `from` begins. */
function next(text: string, from: number): number {
  return text.indexOf(".", from) + 1;
}

function tokenAt(text: string, from: number): string {
  const end = text.indexOf(".", from);
  return text.slice(from, end < 0 ? text.length : end);
}

const ZERO = 48;
const DOT = 46;

/** The whole number at a place; `NaN` when there is none. */
function numberAt(text: string, from: number): number {
  let value = 0;
  let at = from;
  for (let code = text.charCodeAt(at); code !== DOT; code = text.charCodeAt(++at)) {
    if (!(code >= ZERO && code <= ZERO + 9)) return Number.NaN;
    value = value * 10 + code - ZERO;
  }
  return at === from ? Number.NaN : value;
}
