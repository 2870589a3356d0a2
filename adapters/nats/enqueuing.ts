/**
 * Enqueues: one message a job, all in one go, each confirmed by the stream.
 *
 * JetStream takes messages in one by one, so a request can be taken in half. But each message has an id of its own that a copy of the request repeats, so
 * sending it again adds just what is missing.
 *
 * @module
 */
import type { Enqueued, NewJob } from "../../src/broker.ts";
import { BrokerError } from "../../src/errors.ts";
import { Api, type PubAck, readPubAck, StreamGoneError } from "./api.ts";
import type { Core } from "./core.ts";
import { EncodedHeaders, H, type HeaderList, messageIdOfJob, ownHeaders, readEnvelope } from "./envelope.ts";
import { laterTail, levelOf, levelTail } from "./names.ts";
import type { Outgoing } from "./session.ts";

/** What stays free of the largest message, in bytes: the copy that a retry or a dead letter is has more headers. */
const MOVE_ROOM = 8_192;

const encoder = new TextEncoder();

function bytesOf(payload: string | Uint8Array): number {
  return typeof payload === "string" ? encoder.encode(payload).byteLength : payload.byteLength;
}

/** @param windowMs how long the answer is kept for a copy of the request, in milliseconds. */
export async function enqueue(
  core: Core,
  requestId: string,
  jobs: readonly NewJob[],
  timeoutMs: number,
  windowMs: number,
): Promise<readonly Enqueued[]> {
  core.requests.keepFor(windowMs);
  const before = core.requests.get(requestId, core.now());
  if (before !== undefined) return answers(jobs, before);
  if (jobs.length === 0) return [];
  // Copies: what the caller does with its buffers from now on must not reach the jobs.
  const own = jobs.map((job) => (typeof job.body === "string" ? job : { ...job, body: job.body.slice() }));
  try {
    return await send(core, requestId, own, timeoutMs);
  } catch (error) {
    if (!(error instanceof StreamGoneError)) throw error;
    await core.makeAnew();
    return send(core, requestId, own, timeoutMs);
  }
}

async function send(
  core: Core,
  requestId: string,
  jobs: readonly NewJob[],
  timeoutMs: number,
): Promise<readonly Enqueued[]> {
  const session = await core.link.session("enqueue", timeoutMs);
  if (jobs.some((job) => job.delayMs > 0)) await core.readClock(session, "enqueue", timeoutMs);
  const messages = jobs.map((job, at): Outgoing => {
    const { subject, headers: list } = addressed(core, requestId, job, at);
    const payload = job.body;
    const headers = new EncodedHeaders(list);
    if (headers.size + bytesOf(payload) + MOVE_ROOM > core.maxMessageBytes) {
      throw new RangeError(
        `Cannot enqueue job ${job.id}: with its headers it is larger than max_payload or max_msg_size allow, which is ${core.maxMessageBytes} bytes, of which ${MOVE_ROOM} stay free for a retry or a dead letter; raise it there, or store the data elsewhere and enqueue where`,
      );
    }
    return { subject, payload, headers };
  });
  const replies = await session.call("enqueue", timeoutMs, messages);
  const acks: PubAck[] = [];
  let failed: unknown;
  replies.forEach((reply, at) => {
    try {
      acks[at] = readPubAck("enqueue", reply, core.names.jobs);
      core.stored((messages[at] as Outgoing).subject);
    } catch (error) {
      failed ??= error;
    }
  });
  // Nothing is in, then.
  if (failed instanceof StreamGoneError && acks.length === 0) throw failed;
  if (failed !== undefined) {
    const refused = replies.length - acks.filter(Boolean).length;
    const why = failed instanceof Error ? failed.message : "for no reason given";
    throw new BrokerError(
      "nats",
      "enqueue",
      `${why} (${refused} of ${jobs.length} jobs; sending the same request again adds only what is missing)`,
    );
  }
  const api = new Api(session, "enqueue", timeoutMs);
  const duplicates = await areDuplicates(core, api, requestId, jobs, acks);
  core.requests.set(requestId, duplicates, core.now());
  return answers(jobs, duplicates);
}

function answers(jobs: readonly NewJob[], duplicates: readonly boolean[]): Enqueued[] {
  return jobs.map((job, at) => ({ id: job.id, duplicate: duplicates[at] ?? false }));
}

function addressed(
  core: Core,
  requestId: string,
  job: NewJob,
  at: number,
): { subject: string; headers: HeaderList } {
  const { names, clock } = core;
  const level = levelOf(job.priority);
  const headers: [string, string][] = job.dedupe
    ? [
        [H.messageId, messageIdOfJob(job.id)],
        [H.request, `${requestId}/${at}`],
      ]
    : [
        [H.messageId, `req:${requestId}/${at}`],
        [H.id, job.id],
      ];
  headers.push(...(ownHeaders(job.headers) as [string, string][]));
  if (!(job.delayMs > 0)) return { subject: names.subject + levelTail(level), headers };
  const dueAt = clock.latest(core.now()) + Math.ceil(job.delayMs);
  headers.push([H.delay, String(Math.ceil(job.delayMs))]);
  const unique = core.options.random().toString(36).slice(2, 12) + at.toString(36);
  return { subject: names.subject + laterTail(dueAt, level, unique), headers };
}

/**
 * What the server did not take in may be a second job of an id, or a copy of this very request. A message that is still stored tells which; of one
 * that is finished it is not known any more, and a job with an id of its own then counts as a duplicate.
 */
async function areDuplicates(
  core: Core,
  api: Api,
  requestId: string,
  jobs: readonly NewJob[],
  acks: readonly PubAck[],
): Promise<boolean[]> {
  const duplicates = jobs.map((job, at) => job.dedupe && (acks[at] as PubAck).duplicate);
  const asked = duplicates.flatMap((duplicate, at) => (duplicate ? [at] : []));
  if (asked.length === 0) return duplicates;
  const originals = await api.get(
    core.names.jobs,
    asked.map((at) => ({ seq: (acks[at] as PubAck).seq })),
  );
  asked.forEach((at, index) => {
    const original = originals[index];
    if (original !== undefined && readEnvelope(original.headerText).request === `${requestId}/${at}`) {
      duplicates[at] = false;
    }
  });
  return duplicates;
}
