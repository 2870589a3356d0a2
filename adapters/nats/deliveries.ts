/**
 * Which of the messages that came are put under a lease, and in which order.
 *
 * @module
 */
import { parseAckSubject } from "./ack_subject.ts";
import { Held, type Lease, type Leases } from "./leases.ts";
import { placeOf, type Raw } from "./raw.ts";

/** A delivery is held for long: what came along with it need not stay in memory for it. */
export function detach(held: Held): void {
  const { message, reply } = held;
  const incoming = message.incoming.detached();
  if (incoming !== message.incoming) {
    const own = incoming.reply ?? message.reply;
    held.message = { ...message, incoming, reply: own, info: parseAckSubject(own) ?? message.info };
  }
  held.reply = reply === message.reply ? held.message.reply : reply.detached();
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
