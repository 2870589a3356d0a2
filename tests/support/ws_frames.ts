/**
 * Cuts one direction of a WebSocket connection into its pieces: the HTTP head of the upgrade, then frame by frame (RFC 6455, section 5.2).
 *
 * @module
 */

export interface Piece {
  /** As it went over the wire. */
  readonly bytes: Buffer;
  /** What a frame carries, unmasked; the head as it is. */
  text(): string;
}

const HEAD_END = "\r\n\r\n";

export class PieceReader {
  #unread: Buffer = Buffer.alloc(0);
  #isPastHead = false;

  /** Takes bytes in, and answers the pieces that they complete. */
  read(bytes: Buffer): Piece[] {
    this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes]);
    const pieces: Piece[] = [];
    for (;;) {
      const piece = this.#isPastHead ? this.#frame() : this.#head();
      if (piece === undefined) return pieces;
      this.#unread = this.#unread.subarray(piece.bytes.length);
      pieces.push(piece);
    }
  }

  #head(): Piece | undefined {
    const end = this.#unread.indexOf(HEAD_END);
    if (end < 0) return undefined;
    this.#isPastHead = true;
    const bytes = this.#unread.subarray(0, end + HEAD_END.length);
    return { bytes, text: () => bytes.toString() };
  }

  #frame(): Piece | undefined {
    const from = this.#unread;
    if (from.length < 2) return undefined;
    const [short, lengthBytes] = lengthField(from.readUInt8(1) & 0x7f);
    const isMasked = (from.readUInt8(1) & 0x80) !== 0;
    const payloadAt = 2 + lengthBytes + (isMasked ? 4 : 0);
    if (from.length < payloadAt) return undefined;
    const length =
      lengthBytes === 0 ? short : lengthBytes === 2 ? from.readUInt16BE(2) : Number(from.readBigUInt64BE(2));
    if (from.length < payloadAt + length) return undefined;
    const bytes = from.subarray(0, payloadAt + length);
    return {
      bytes,
      text() {
        const payload = Buffer.from(bytes.subarray(payloadAt));
        if (isMasked)
          for (let n = 0; n < length; n += 1)
            payload[n] = at(payload, n) ^ at(bytes, payloadAt - 4 + (n % 4));
        return payload.toString("latin1");
      },
    };
  }
}

function at(bytes: Buffer, index: number): number {
  return bytes[index] ?? 0;
}

/** The length that the second byte says, and how many bytes after it say more. */
function lengthField(value: number): readonly [short: number, lengthBytes: 0 | 2 | 8] {
  if (value < 126) return [value, 0];
  return [value, value === 126 ? 2 : 8];
}
