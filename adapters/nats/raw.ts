/**
 * JetStream's messages, read as jobs.
 *
 * @module
 */
import type { RawBody } from "../../src/broker.ts";
import { type DeliveryInfo, parseAckSubject } from "./ack_subject.ts";
import type { Address } from "./address.ts";
import { type Envelope, readEnvelope } from "./envelope.ts";
import type { Incoming } from "./incoming.ts";
import type { Lane } from "./lane.ts";

/** A message that came for a claim, read as it came: while the server is still handing out the others. */
export interface Raw {
  readonly lane: Lane;
  readonly incoming: Incoming;
  /** Where acks go. */
  readonly reply: Address;
  readonly info: DeliveryInfo;
  readonly envelope: Envelope;
  readonly body: RawBody;
  /** When the pull that brought it was sent, on the broker's clock: the server's lease began no earlier. */
  readonly sentAt: number;
  /** How many of the server's hand-outs count: each but the last used up an attempt. */
  handOuts: number;
}

/**
 * Of so many hand-outs, how many somebody can have had. The server counts also those that reached nobody: of a pull that was ended in that very moment. It hands a
 * message out again at once then; but after one that was received, only when a whole lease is over.
 *
 * @param ageMs how long the message has been stored, at most.
 * @param leaseMs the server's wait for an ack, at least.
 */
export function countedHandOuts(delivered: number, ageMs: number, leaseMs: number): number {
  return Math.min(delivered, 1 + Math.floor(Math.max(0, ageMs) / leaseMs));
}

/** Reads a message; `undefined` of one that is no delivery. */
export function receive(lane: Lane, incoming: Incoming, sentAt: number): Raw | undefined {
  const { reply } = incoming;
  const info = reply === undefined ? undefined : parseAckSubject(reply);
  if (reply === undefined || info === undefined) return undefined;
  const { headers, body } = incoming.read();
  return {
    lane,
    incoming,
    reply,
    info,
    envelope: readEnvelope(headers),
    body,
    sentAt,
    handOuts: info.delivered,
  };
}

/** A job's place: when it was stored, and under which sequence. Places compare as texts. */
export function placeOf({ envelope, info }: Pick<Raw, "envelope" | "info">): string {
  return envelope.place ?? `${info.storedNs}.${String(info.streamSequence).padStart(16, "0")}`;
}
