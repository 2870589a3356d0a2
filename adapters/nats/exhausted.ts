/**
 * Jobs of a source that ran out of its consumer's `max_deliver`. The server parks such a message for good and says so once, in an advisory. A stream of ours
 * keeps the advisories; whoever claims looks at it, and sets those jobs aside as dead letters.
 *
 * What ran out before that stream was made is looked for when it is made, if nothing is held then: above the consumer's floor, whatever is still there
 * was handed out for the last time.
 *
 * @module
 */
import { Api, ApiError, type ConsumerInfo, readPubAck, type StoredMessage } from "./api.ts";
import { exhaustedStream } from "./config.ts";
import type { Core } from "./core.ts";
import { EncodedHeaders, errorHeader, H, ownHeaders, readEnvelope } from "./envelope.ts";
import type { Session } from "./session.ts";

/** How often the stream is looked at although nobody told of anything, in milliseconds. */
const LOOK_EVERY_MS = 60_000;
const AT_ONCE = 256;

export class Exhausted {
  readonly #core: Core;
  #maxDeliver = -1;
  /** When to look next, on the broker's clock. */
  #lookAt = Number.POSITIVE_INFINITY;
  #heardOver: Session | undefined;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Makes the stream of advisories if the source's consumer has an end, and looks for what ran out before. */
  async open(session: Session, info: ConsumerInfo, timeoutMs: number): Promise<void> {
    const core = this.#core;
    const { source, names } = core;
    this.#maxDeliver = info.config.max_deliver ?? -1;
    if (source === undefined || this.#maxDeliver < 1) return;
    this.#lookAt = core.now();
    const api = new Api(session, "open", timeoutMs);
    const there = await api.ask(`STREAM.INFO.${names.exhausted}`).then(
      () => true,
      (error: unknown) => {
        if (error instanceof ApiError && error.code === 404) return false;
        throw error;
      },
    );
    if (there) return;
    await api.ask(`STREAM.CREATE.${names.exhausted}`, exhaustedStream(names, source, core.options));
    if (info.num_ack_pending > 0) return;
    const sequences: number[] = [];
    let from = info.ack_floor.stream_seq + 1;
    while (from <= info.delivered.stream_seq) {
      const [one] = await api.get(source.stream, [
        { seq: from, next_by_subj: info.config.filter_subject || ">" },
      ]);
      if (one === undefined || one.sequence > info.delivered.stream_seq) break;
      sequences.push(one.sequence);
      from = one.sequence + 1;
    }
    await this.#bury(session, api, sequences, timeoutMs);
  }

  /** Sets aside what ran out, if it is time to look. */
  async look(session: Session, timeoutMs: number): Promise<void> {
    const core = this.#core;
    if (this.#maxDeliver < 1) return;
    this.#hear(session);
    if (core.now() < this.#lookAt) return;
    this.#lookAt = core.now() + LOOK_EVERY_MS;
    const { names } = core;
    const api = new Api(session, "claim", timeoutMs);
    const { state } = await api.streamInfo(names.exhausted);
    for (let from = Math.max(1, state.first_seq); from <= state.last_seq; from += AT_ONCE) {
      const count = Math.min(AT_ONCE, state.last_seq - from + 1);
      const stored = await api.get(
        names.exhausted,
        Array.from({ length: count }, (_, at) => ({ seq: from + at })),
      );
      const advisories = stored.filter((one) => one !== undefined);
      await this.#bury(session, api, advisories.flatMap(sequenceOf), timeoutMs);
      await api.remove(
        names.exhausted,
        advisories.map((one) => one.sequence),
      );
    }
  }

  /** The server tells of each as it happens. */
  #hear(session: Session): void {
    const { source } = this.#core;
    if (this.#heardOver === session || source === undefined) return;
    this.#heardOver = session;
    const subject = `$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.${source.stream}.${source.consumer}`;
    session.subscribe(subject, () => {
      this.#lookAt = this.#core.now();
    });
  }

  /** Copies messages of the source to the dead letters, then removes them there. */
  async #bury(session: Session, api: Api, sequences: readonly number[], timeoutMs: number): Promise<void> {
    const { source, names } = this.#core;
    if (source === undefined || sequences.length === 0) return;
    const found = await api.get(
      source.stream,
      sequences.map((seq) => ({ seq })),
    );
    const jobs = found.filter((one) => one !== undefined);
    const replies = await session.call(
      "claim",
      timeoutMs,
      jobs.map((one) => {
        const envelope = readEnvelope(one.headerText);
        return {
          subject: names.deadSubject,
          payload: one.data,
          headers: new EncodedHeaders([
            [H.messageId, `exhausted:${source.stream}:${one.sequence}:${one.storedAt}`],
            [H.id, envelope.id ?? `${source.stream}:${one.sequence}`],
            [H.enqueuedAt, String(envelope.enqueuedAt ?? one.storedAt)],
            [H.attempts, String(envelope.attemptsBefore + this.#maxDeliver)],
            [H.priority, "normal"],
            [
              H.error,
              errorHeader(`The server handed it out ${this.#maxDeliver} times, its consumer's max_deliver`),
            ],
            ...ownHeaders(envelope.headers),
          ]),
        };
      }),
    );
    for (const reply of replies) readPubAck("claim", reply, names.dead);
    try {
      await api.remove(
        source.stream,
        jobs.map((one) => one.sequence),
      );
    } catch {
      // A stream of yours may deny deletes. The job is among the dead letters, and the server hands it out no more.
    }
  }
}

function sequenceOf(advisory: StoredMessage): number[] {
  try {
    const { stream_seq } = JSON.parse(new TextDecoder().decode(advisory.data)) as { stream_seq?: unknown };
    return typeof stream_seq === "number" ? [stream_seq] : [];
  } catch {
    return [];
  }
}
