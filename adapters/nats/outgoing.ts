/**
 * Protocol lines that leave together, as bytes of one piece. Pure.
 *
 * They are written where they are to stand: arrays made only to be joined cost more than what is written into them.
 *
 * @module
 */
import type { Address } from "./address.ts";

const encoder = new TextEncoder();
const FIRST_BYTES = 4_096;
/** What has grown beyond this is given up once it was taken. */
const KEPT_BYTES = 65_536;

const PUB = encoder.encode("PUB ");

export class OutgoingLines {
  #bytes = new Uint8Array(FIRST_BYTES);
  #length = 0;

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** Adds whole lines. */
  add(lines: Uint8Array): void {
    const bytes = this.#room(lines.length);
    bytes.set(lines, this.#length);
    this.#length += lines.length;
  }

  /** Adds a message to where another is answered. */
  addAnswer(to: Address, tail: AnswerTail): void {
    const length = to.to - to.from;
    const bytes = this.#room(PUB.length + length + tail.bytes.length);
    let at = this.#length;
    at = copy(PUB, 0, PUB.length, bytes, at);
    at = copy(to.bytes, to.from, to.to, bytes, at);
    this.#length = copy(tail.bytes, 0, tail.bytes.length, bytes, at);
  }

  /** All of them, as bytes of their taker's own; there are none then. */
  take(): Uint8Array {
    const taken = this.#bytes.slice(0, this.#length);
    this.#length = 0;
    if (this.#bytes.length > KEPT_BYTES) this.#bytes = new Uint8Array(FIRST_BYTES);
    return taken;
  }

  /** Makes sure that so many more fit. */
  #room(more: number): Uint8Array {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length) return this.#bytes;
    const grown = new Uint8Array(Math.max(needed, 2 * this.#bytes.length));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
    return grown;
  }
}

/** What follows an address: where that message in turn is to be answered, if anywhere, and a short text. */
export class AnswerTail {
  readonly bytes: Uint8Array;
  /** @param text ASCII. */
  constructor(text: string, reply?: string) {
    const to = reply === undefined ? "" : ` ${reply}`;
    this.bytes = encoder.encode(`${to} ${text.length}\r\n${text}\r\n`);
  }
}

/** For some bytes a loop: a call of the runtime's takes longer. Answers where it ended. */
function copy(source: Uint8Array, from: number, to: number, target: Uint8Array, at: number): number {
  let end = at;
  for (let index = from; index < to; index++) {
    target[end] = source[index] as number;
    end += 1;
  }
  return end;
}
