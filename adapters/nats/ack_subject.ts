/**
 * The reply subject of a JetStream delivery, in which the server tells what it knows of it. Pure.
 *
 * @module
 */
import type { Address } from "./address.ts";

const PREFIX = new TextEncoder().encode("$JS.ACK.");
const NS_PER_MS = 1_000_000;

/** Of most jobs only the two numbers are ever asked for, so the rest is read when it is. */
export class DeliveryInfo {
  readonly #reply: Address;
  /** Where the stream's name, and the time, begin. */
  readonly #streamAt: number;
  readonly #timeAt: number;
  /** How often the server has handed it out: 1 for the first. */
  readonly delivered: number;
  readonly streamSequence: number;

  constructor(reply: Address, streamAt: number, timeAt: number, delivered: number, streamSequence: number) {
    this.#reply = reply;
    this.#streamAt = streamAt;
    this.#timeAt = timeAt;
    this.delivered = delivered;
    this.streamSequence = streamSequence;
  }

  get stream(): string {
    return this.#token(this.#streamAt);
  }

  /** When it was stored, Unix nanoseconds as 19 digits: so they compare as texts. */
  get storedNs(): string {
    return this.#token(this.#timeAt).padStart(19, "0");
  }

  /** The same in whole milliseconds. */
  get storedMs(): number {
    return Math.floor(numberAt(this.#reply, this.#timeAt) / NS_PER_MS);
  }

  #token(from: number): string {
    const { bytes, to } = this.#reply;
    let end = from;
    while (end < to && bytes[end] !== DOT) end += 1;
    return this.#reply.part(from, end);
  }
}

/** Reads `$JS.ACK.…`, in its older form of nine tokens or its newer one of eleven or more; `undefined` of anything else. */
export function parseAckSubject(reply: Address): DeliveryInfo | undefined {
  const { bytes, from, to } = reply;
  for (let at = 0; at < PREFIX.length; at++) if (bytes[from + at] !== PREFIX[at]) return undefined;
  let tokens = 1;
  for (let at = from; at < to; at++) if (bytes[at] === DOT) tokens += 1;
  if (tokens < 9) return undefined;
  let at = from + PREFIX.length;
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

const ZERO = 48;
const DOT = 46;

/** Where the token behind the one at `from` begins. */
function next({ bytes, to }: Address, from: number): number {
  let at = from;
  while (at < to && bytes[at] !== DOT) at += 1;
  return at + 1;
}

/** The whole number at a place, with a dot behind; `NaN` when there is none. */
function numberAt({ bytes, to }: Address, from: number): number {
  let value = 0;
  let at = from;
  for (; at < to && bytes[at] !== DOT; at++) {
    const digit = (bytes[at] as number) - ZERO;
    if (!(digit >= 0 && digit <= 9)) return Number.NaN;
    value = value * 10 + digit;
  }
  return at === from || at >= to ? Number.NaN : value;
}
