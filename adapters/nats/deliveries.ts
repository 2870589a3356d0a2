/**
 * From JetStream's messages to deliveries of the port.
 *
 * @module
 */
import type { RawBody } from "../../src/broker.ts";
import { type DeliveryInfo, parseAckSubject } from "./ack_subject.ts";
import type { Address } from "./address.ts";
import { type Envelope, readEnvelope } from "./envelope.ts";
import type { Incoming } from "./incoming.ts";
import type { Lane } from "./lane.ts";
import { Held, type Lease, type Leases } from "./leases.ts";

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

/** Puts messages under a lease, in the order in which they are to be handed out. */
export function holdAll(raws: readonly Raw[], lease: Lease, leases: Leases, now: number): void {
  const found = raws.filter((raw) => isNew(raw, leases, now));
  if (!inOrder(found)) found.sort(before);
  for (const one of found) hold(one, lease);
}

function isNew(raw: Raw, leases: Leases, now: number): boolean {
  const { lane, info } = raw;
  if (info.streamSequence > lane.newest) {
    lane.newest = info.streamSequence;
    return true;
  }
  const known = leases.held(lane, info.streamSequence);
  if (known === undefined) return true;
  const isSame = known.message.info.storedNs === info.storedNs;
  if (isSame && now < known.lease.deadline) {
    // The server forgot that we have it (it crashed). It is being worked on, so this hand-out takes the place of the first.
    known.reply = raw.reply;
    return false;
  }
  // Its lease has run out; or the stream was made anew and counts from 1 again: an ack of what was held would end this job.
  leases.end(known.lease, now);
  return true;
}

/** A job's place: when it was stored, and under which sequence. Places compare as texts. */
export function placeOf({ envelope, info }: Pick<Raw, "envelope" | "info">): string {
  return envelope.place ?? `${info.storedNs}.${String(info.streamSequence).padStart(16, "0")}`;
}

/** High levels first, within a level by place. */
function before(a: Raw, b: Raw): number {
  const levels = a.lane.level - b.lane.level;
  if (levels !== 0) return levels;
  if (a.lane === b.lane && a.lane.kind !== "returned") return a.info.streamSequence - b.info.streamSequence;
  const [one, two] = [placeOf(a), placeOf(b)];
  return one < two ? -1 : one > two ? 1 : 0;
}

function inOrder(found: readonly Raw[]): boolean {
  for (let at = 1; at < found.length; at++) {
    if (before(found[at - 1] as Raw, found[at] as Raw) > 0) return false;
  }
  return true;
}

function hold(message: Raw, lease: Lease): void {
  lease.slots.push(new Held(message, lease));
  lease.open += 1;
}
