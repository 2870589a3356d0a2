/**
 * From JetStream's messages to deliveries of the port.
 *
 * @module
 */
import type { Msg } from "nats.ws";
import { type DeliveryInfo, msOf, parseAckSubject } from "./ack_subject.ts";
import { type Envelope, readEnvelope } from "./envelope.ts";
import type { Lane } from "./lane.ts";
import type { Held, Lease, Leases } from "./leases.ts";
import { priorityOf } from "./names.ts";
import { bodyOf } from "./text.ts";

/** A message that came for a claim, before it is put under a lease. Its reply is read at once: the library reads it lazily. */
export interface Raw {
  readonly lane: Lane;
  readonly message: Msg;
  readonly reply: string;
  /** When the pull that brought it was sent, on the broker's clock: the server's lease began no earlier. */
  readonly sentAt: number;
}

const decoder = new TextDecoder();

/** Puts messages under a lease, in the order in which they are to be handed out. */
export function holdAll(raws: readonly Raw[], lease: Lease, leases: Leases, now: number): void {
  const found: Unplaced[] = [];
  for (const raw of raws) {
    const one = read(raw, leases, now);
    if (one !== undefined) found.push(one);
  }
  if (!inOrder(found)) found.sort(before);
  for (const one of found) hold(one, lease);
}

interface Unplaced {
  readonly raw: Raw;
  readonly info: DeliveryInfo;
  readonly envelope: Envelope;
}

function read(raw: Raw, leases: Leases, now: number): Unplaced | undefined {
  const info = parseAckSubject(raw.reply);
  if (info === undefined) return undefined;
  const { lane } = raw;
  const known = lane.held.get(info.streamSequence);
  if (known !== undefined) {
    if (now < known.lease.deadline) {
      // The server forgot that we have it (it crashed). It is being worked on, so this hand-out takes the place of the first.
      known.reply = raw.reply;
      return undefined;
    }
    leases.end(known.lease, now);
  }
  return { raw, info, envelope: readEnvelope(headerText(raw)) };
}

/** A message's headers as they came. The library's own reading of them costs more than all the rest of a delivery. */
function headerText({ lane, message, reply }: Raw): string {
  const { data } = message;
  // Of a message of ours the subject is known, so the headers' length is too.
  const size = (message as Msg & { size?(): number }).size?.() ?? 0;
  const length = size - lane.subject.length - reply.length - data.length;
  if (lane.subject !== "" && length >= 10 && length <= data.byteOffset) {
    const text = decoder.decode(new Uint8Array(data.buffer, data.byteOffset - length, length));
    if (text.startsWith("NATS/1.0") && text.endsWith("\r\n\r\n")) return text;
  }
  return message.headers?.toString() ?? "";
}

/** A job's place: when it was stored, and under which sequence. Places compare as texts. */
export function placeOf({ envelope, info }: Pick<Unplaced, "envelope" | "info">): string {
  return envelope.place ?? `${info.storedNs}.${String(info.streamSequence).padStart(16, "0")}`;
}

/** High levels first, within a level by place. */
function before(a: Unplaced, b: Unplaced): number {
  const levels = a.raw.lane.level - b.raw.lane.level;
  if (levels !== 0) return levels;
  if (a.raw.lane === b.raw.lane && a.raw.lane.kind !== "returned") {
    return a.info.streamSequence - b.info.streamSequence;
  }
  const [one, two] = [placeOf(a), placeOf(b)];
  return one < two ? -1 : one > two ? 1 : 0;
}

function inOrder(found: readonly Unplaced[]): boolean {
  for (let at = 1; at < found.length; at++) {
    if (before(found[at - 1] as Unplaced, found[at] as Unplaced) > 0) return false;
  }
  return true;
}

function hold({ raw, info, envelope }: Unplaced, lease: Lease): void {
  const { lane, message, reply } = raw;
  const body = message.data;
  const held: Held = {
    lane,
    sequence: info.streamSequence,
    info,
    envelope,
    delivery: {
      id: envelope.id ?? `${lane.kind === "source" ? info.stream : "seq"}:${info.streamSequence}`,
      leaseId: lease.id,
      token: String(lease.slots.length),
      attempt: envelope.attemptsBefore + info.delivered,
      suspect: envelope.suspect || info.delivered > 1,
      enqueuedAt: envelope.enqueuedAt ?? msOf(info.storedNs),
      headers: envelope.headers,
      body: bodyOf(body),
      priority: priorityOf(lane.level),
    },
    body,
    lease,
    reply,
    open: true,
  };
  lease.slots.push(held);
  lease.open += 1;
  lane.held.set(held.sequence, held);
}
