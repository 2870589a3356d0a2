/**
 * Bytes that come in pieces. Pure.
 *
 * @module
 */

/** Several pieces as one; a single one is that itself. `length`: of all together. */
export function joined<B extends ArrayBufferLike>(
  pieces: readonly Uint8Array<B>[],
  length: number,
): Uint8Array<B | ArrayBuffer> {
  if (pieces.length === 1) return pieces[0] as Uint8Array<B>;
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
