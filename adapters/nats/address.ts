/**
 * Where a message is to be answered, as it came: it goes back as it is, and is looked at as text where somebody asks only. Pure.
 *
 * @module
 */
const decoder = new TextDecoder();
const encoder = new TextEncoder();

export class Address {
  readonly bytes: Uint8Array;
  /** Where it begins and ends in them. */
  readonly from: number;
  readonly to: number;

  constructor(bytes: Uint8Array, from: number, to: number) {
    this.bytes = bytes;
    this.from = from;
    this.to = to;
  }

  static of(text: string): Address {
    const bytes = encoder.encode(text);
    return new Address(bytes, 0, bytes.length);
  }

  /** The same in bytes of its own. */
  detached(): Address {
    const { bytes, from, to } = this;
    return to - from === bytes.length ? this : new Address(bytes.slice(from, to), 0, to - from);
  }

  get text(): string {
    return this.part(this.from, this.to);
  }

  /** A part of it as text. The places are those of its bytes. */
  part(from: number, to: number): string {
    return decoder.decode(this.bytes.subarray(from, to));
  }
}
