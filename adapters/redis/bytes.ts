/**
 * Bytes as text and back, for a transport of JSON.
 *
 * @module
 */

const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** The text whose UTF-8 these bytes are, or `undefined` when they are none. */
export function asText(bytes: Uint8Array): string | undefined {
  try {
    return strictDecoder.decode(bytes);
  } catch {
    return undefined;
  }
}

/** How many bytes a value takes within a JSON request. */
export function jsonBytes(text: string): number {
  return encoder.encode(JSON.stringify(text)).byteLength;
}

/** Argument lists have a limit, so a large array is converted in pieces. */
const PIECE = 32_768;

export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += PIECE) {
    binary += String.fromCharCode(...bytes.subarray(at, at + PIECE));
  }
  return btoa(binary);
}

/** @throws {Error} when the text is no base64. */
export function fromBase64(text: string): Uint8Array {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

/** Undoes the script's escape: ASCII with `%hh` for `%` and for every byte above 127. */
export function fromEscaped(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x25) {
      bytes[length++] = Number.parseInt(text.slice(at + 1, at + 3), 16);
      at += 2;
    } else bytes[length++] = code;
  }
  return bytes.slice(0, length);
}
