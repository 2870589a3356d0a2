/**
 * Cutting a stream of bytes into lines, in bounded memory.
 *
 * @module
 */

/** One line of the input. Numbers start at 1 and count blank lines too. */
export type Line =
  | { readonly number: number; readonly bytes: Uint8Array; readonly tooLong?: undefined }
  /** Longer than allowed: its bytes were dropped. */
  | { readonly number: number; readonly bytes?: undefined; readonly tooLong: true };

const NEWLINE = 0x0a;
const RETURN = 0x0d;

/**
 * Cuts chunks into lines. A line is what stands between two `\n`; a `\r` before it and a byte order mark at the very start belong to the
 * framing and are left out; blank lines are skipped. Never holds more than one line of `maxLineBytes`.
 */
export class LineSplitter {
  readonly #maxLineBytes: number;
  #parts: Uint8Array[] = [];
  #size = 0;
  #number = 1;
  #tooLong = false;

  constructor(maxLineBytes: number) {
    this.#maxLineBytes = maxLineBytes;
  }

  /** The number of the line that is being read. */
  get lineNumber(): number {
    return this.#number;
  }

  /** The lines that this chunk completes. */
  push(chunk: Uint8Array): Line[] {
    const lines: Line[] = [];
    let from = 0;
    for (;;) {
      const to = chunk.indexOf(NEWLINE, from);
      if (to < 0) break;
      this.#keep(chunk.subarray(from, to));
      this.#finish(lines);
      from = to + 1;
    }
    // A copy, since the reader may use the chunk's memory again.
    if (from < chunk.byteLength) this.#keep(chunk.slice(from));
    return lines;
  }

  /** What is left when the input ends without a newline. */
  end(): Line[] {
    const lines: Line[] = [];
    if (this.#size > 0 || this.#tooLong) this.#finish(lines);
    return lines;
  }

  #keep(part: Uint8Array): void {
    if (part.byteLength === 0 || this.#tooLong) return;
    this.#size += part.byteLength;
    // One more than the limit may be a "\r" that does not count, and three more on line 1 a byte order mark.
    if (this.#size > this.#maxLineBytes + (this.#number === 1 ? 4 : 1)) {
      this.#tooLong = true;
      this.#parts = [];
      return;
    }
    this.#parts.push(part);
  }

  #finish(lines: Line[]): void {
    const number = this.#number;
    const bytes = this.#tooLong ? undefined : trimmed(this.#parts, this.#size, number === 1);
    if (bytes === undefined || bytes.byteLength > this.#maxLineBytes) lines.push({ number, tooLong: true });
    else if (!isBlank(bytes)) lines.push({ number, bytes });
    this.#parts = [];
    this.#size = 0;
    this.#tooLong = false;
    this.#number += 1;
  }
}

function trimmed(parts: readonly Uint8Array[], size: number, first: boolean): Uint8Array {
  const line = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    line.set(part, at);
    at += part.byteLength;
  }
  const from = first && line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf ? 3 : 0;
  const to = line[size - 1] === RETURN ? size - 1 : size;
  return line.subarray(from, Math.max(from, to));
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === RETURN);
}
