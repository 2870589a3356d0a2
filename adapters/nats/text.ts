/**
 * Bytes as text. Pure.
 *
 * @module
 */

const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text whose UTF-8 these bytes are, else a copy of the bytes: either is its receiver's own. */
export function bodyOf(bytes: Uint8Array): string | Uint8Array {
  try {
    return strictDecoder.decode(bytes);
  } catch {
    return bytes.slice();
  }
}
