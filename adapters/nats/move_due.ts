/**
 * Moves delayed jobs that came due to where they are claimed from: copied there, confirmed, then removed.
 *
 * Any number of workers may do so at the same time: the copy's id is that of the delayed message, so a second one is not taken in.
 *
 * @module
 */
import type { Msg } from "nats.ws";
import { Api, readPubAck, type StoredMessage } from "./api.ts";
import type { Core } from "./core.ts";
import { EncodedHeaders, H, type HeaderList, ownHeaders, readEnvelope } from "./envelope.ts";
import { levelTail, parseLater } from "./names.ts";
import type { Outgoing, Session } from "./session.ts";

/** How many one round moves. */
const AT_ONCE = 256;

/**
 * Moves some of what is due. Answers whether anything was.
 *
 * @throws {BrokerError} when the stream refused some (it is full); the others were moved.
 */
export async function moveDue(core: Core, session: Session, timeoutMs: number): Promise<boolean> {
  if (core.later.size === 0) return false;
  await core.readClock(session, "claim", timeoutMs);
  const startedAt = core.now();
  const subjects = core.later.due(core.clock.earliest(startedAt), AT_ONCE);
  if (subjects.length === 0) return false;
  const { names, later } = core;
  const api = new Api(session, "claim", timeoutMs);
  const stored = await api.get(
    names.jobs,
    subjects.map((subject) => ({ last_by_subj: subject })),
  );
  const found = stored.filter((one) => one !== undefined);
  const copies = found.map((one): Outgoing => {
    const level = parseLater(one.subject)?.level ?? 1;
    return {
      subject: names.subject + levelTail(level),
      payload: one.data,
      headers: new EncodedHeaders(headersOf(one)),
    };
  });
  const replies = await session.call("claim", timeoutMs, copies);
  const moved: number[] = [];
  const refused = new Set<string>();
  let failed: unknown;
  found.forEach(({ sequence, subject }, at) => {
    try {
      readPubAck("claim", replies[at] as Msg, names.jobs);
      core.stored((copies[at] as Outgoing).subject);
      moved.push(sequence);
    } catch (error) {
      failed ??= error;
      refused.add(subject);
    }
  });
  await api.remove(names.jobs, moved);
  for (const subject of subjects) if (!refused.has(subject)) later.remove(subject);
  if (failed !== undefined) throw failed;
  return true;
}

/** The job's headers, without what was the delayed message's alone. */
function headersOf(one: StoredMessage): HeaderList {
  const envelope = readEnvelope(one.headerText);
  return [
    [H.messageId, `due:${one.sequence}`],
    // Somebody may have published to a delayed subject by hand, without an id.
    [H.id, envelope.id ?? `seq:${one.sequence}`],
    [H.enqueuedAt, String(envelope.enqueuedAt ?? one.storedAt)],
    [H.attempts, String(envelope.attemptsBefore)],
    ...ownHeaders(envelope.headers),
  ];
}
