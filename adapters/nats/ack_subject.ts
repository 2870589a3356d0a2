/**
 * The reply subject of a JetStream delivery, in which the server tells what it knows of it. Pure.
 *
 * @module
 */

export interface DeliveryInfo {
  readonly stream: string;
  /** How often the server has handed it out: 1 for the first. */
  readonly delivered: number;
  readonly streamSequence: number;
  /** When it was stored, Unix nanoseconds as 19 digits: so they compare as texts. */
  readonly storedNs: string;
}

/** Reads `$JS.ACK.…`, in its older form of nine tokens or its newer one of eleven or more; `undefined` of anything else. */
export function parseAckSubject(reply: string): DeliveryInfo | undefined {
  const tokens = reply.split(".");
  if (tokens.length < 9 || tokens[0] !== "$JS" || tokens[1] !== "ACK") return undefined;
  // The newer form has a domain and an account between the prefix and the stream.
  const at = tokens.length === 9 ? 2 : 4;
  const delivered = Number(tokens[at + 2]);
  const streamSequence = Number(tokens[at + 3]);
  if (!(delivered >= 1) || !(streamSequence >= 1)) return undefined;
  const storedNs = tokens[at + 5] as string;
  return {
    stream: tokens[at] as string,
    delivered,
    streamSequence,
    storedNs: storedNs.length === 19 ? storedNs : storedNs.padStart(19, "0"),
  };
}

/** Unix milliseconds of a time in nanoseconds. */
export function msOf(ns: string): number {
  return Number(ns.slice(0, -6));
}
