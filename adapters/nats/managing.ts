/**
 * Looking at a queue and managing it: sizes, peek, clear, redrive, pause.
 *
 * @module
 */
import type { JobState, PeekedJob, Priority, QueueSizes } from "../../src/broker.ts";
import { parseAckSubject } from "./ack_subject.ts";
import type { Address } from "./address.ts";
import { Api, type ConsumerInfo, readPubAck, type StoredMessage } from "./api.ts";
import type { Core } from "./core.ts";
import { EncodedHeaders, type Envelope, H, ownHeaders, readEnvelope } from "./envelope.ts";
import type { Incoming } from "./incoming.ts";
import type { Lane } from "./lane.ts";
import { Line, LinePull } from "./line.ts";
import { levelOf, levelTail, PAUSED_TAIL, parseLater, priorityOf } from "./names.ts";
import type { Session } from "./session.ts";
import { bodyOf } from "./text.ts";

/** How many messages are asked for, or removed, in one go. */
const AT_ONCE = 256;

/** How things stand with a queue, in one look. */
interface Standing {
  readonly session: Session;
  readonly api: Api;
  readonly consumers: ReadonlyMap<Lane, ConsumerInfo>;
  /** How many messages each subject of ours has. */
  readonly subjects: ReadonlyMap<string, number>;
  /** Delayed jobs' subjects, earliest first, and how many of them are due. */
  readonly later: readonly string[];
  readonly due: number;
}

export class Managing {
  readonly #core: Core;
  #serial = 0;

  constructor(core: Core) {
    this.#core = core;
  }

  async sizes(timeoutMs: number): Promise<QueueSizes> {
    const { names, lanes } = this.#core;
    const standing = await this.#look("sizes", timeoutMs);
    const { api, consumers, subjects, later, due } = standing;
    let ready = due;
    let held = 0;
    for (const lane of lanes.all) {
      const info = consumers.get(lane);
      ready += info?.num_pending ?? subjects.get(lane.subject) ?? 0;
      held += info?.num_ack_pending ?? 0;
    }
    const [dead, [paused]] = await Promise.all([
      api.streamInfo(names.dead),
      api.get(names.jobs, [{ last_by_subj: names.subject + PAUSED_TAIL }]),
    ]);
    return {
      ready,
      delayed: later.length - due,
      held,
      dead: dead.state.messages,
      paused: paused !== undefined && new TextDecoder().decode(paused.data) === "1",
    };
  }

  async peek(state: JobState, limit: number, timeoutMs: number): Promise<PeekedJob[]> {
    if (!(limit >= 1)) return [];
    const most = Math.floor(limit);
    if (state === "dead") return this.#peekDead(most, timeoutMs);
    const standing = await this.#look("peek", timeoutMs);
    if (state === "delayed") {
      const wanted = standing.later.slice(standing.due, standing.due + most);
      return this.#peekLater(standing, wanted, "delayed");
    }
    const found: PeekedJob[] = [];
    for (const level of [0, 1, 2] as const) {
      for (const lane of this.#core.lanes.ofLevel(level)) {
        if (found.length < most)
          found.push(...(await this.#peekLane(standing, lane, state, most - found.length)));
      }
      if (state === "held" || found.length >= most) continue;
      const due = standing.later.slice(0, standing.due).filter((one) => parseLater(one)?.level === level);
      found.push(...(await this.#peekLater(standing, due.slice(0, most - found.length), "ready")));
    }
    return found;
  }

  async clear(states: readonly ("ready" | "delayed" | "dead")[], timeoutMs: number): Promise<number> {
    const { names, lanes, later: index } = this.#core;
    const standing = await this.#look("clear", timeoutMs);
    const { api, later, due } = standing;
    let removed = 0;
    if (states.includes("ready")) {
      for (const lane of lanes.all) removed += await this.#clearLane(standing, lane, timeoutMs);
    }
    const gone = [
      ...(states.includes("ready") ? later.slice(0, due) : []),
      ...(states.includes("delayed") ? later.slice(due) : []),
    ];
    for (let at = 0; at < gone.length; at += AT_ONCE) {
      const some = gone.slice(at, at + AT_ONCE);
      const stored = await api.get(
        names.jobs,
        some.map((subject) => ({ last_by_subj: subject })),
      );
      removed += await api.remove(
        names.jobs,
        stored.flatMap((one) => (one === undefined ? [] : [one.sequence])),
      );
      for (const subject of some) index.remove(subject);
    }
    if (states.includes("dead")) removed += await api.purge(names.dead, names.deadSubject);
    return removed;
  }

  async redrive(
    options: { readonly ids?: readonly string[]; readonly limit: number },
    timeoutMs: number,
  ): Promise<number> {
    const core = this.#core;
    const { names } = core;
    const wanted = options.ids && new Set(options.ids);
    if (!(options.limit >= 1) || wanted?.size === 0) return 0;
    const session = await core.link.session("redrive", timeoutMs);
    const api = new Api(session, "redrive", timeoutMs);
    let moved = 0;
    for await (const page of this.#dead(api)) {
      const chosen = page
        .filter((one) => wanted === undefined || wanted.has(idOf(one, readEnvelope(one.headerText))))
        .slice(0, Math.floor(options.limit) - moved);
      const messages = chosen.map((one) => {
        const envelope = readEnvelope(one.headerText);
        return {
          subject: names.subject + levelTail(levelOf(priorityIn(envelope))),
          payload: one.data,
          headers: new EncodedHeaders([
            [H.messageId, `redrive:${one.sequence}:${one.storedAt}`],
            [H.id, idOf(one, envelope)],
            [H.enqueuedAt, String(envelope.enqueuedAt ?? one.storedAt)],
            ...ownHeaders(envelope.headers),
          ]),
        };
      });
      const replies = await session.call("redrive", timeoutMs, messages);
      for (const reply of replies) readPubAck("redrive", reply, names.jobs);
      for (const { subject } of messages) core.stored(subject);
      // Whoever removes a dead letter is the one that put it back: others may be at it, whose copies are the same.
      moved += await api.remove(
        names.dead,
        chosen.map((one) => one.sequence),
      );
      if (moved >= Math.floor(options.limit)) break;
    }
    return moved;
  }

  async setPaused(paused: boolean, timeoutMs: number): Promise<void> {
    const core = this.#core;
    const verb = paused ? "pause" : "resume";
    const session = await core.link.session(verb, timeoutMs);
    const reply = await session.ask(verb, timeoutMs, {
      subject: core.names.subject + PAUSED_TAIL,
      payload: paused ? "1" : "0",
      headers: new EncodedHeaders([[H.rollup, "sub"]]),
    });
    readPubAck(verb, reply, core.names.jobs);
  }

  async #look(verb: string, timeoutMs: number): Promise<Standing> {
    const core = this.#core;
    const { names, lanes } = core;
    const session = await core.link.session(verb, timeoutMs);
    const api = new Api(session, verb, timeoutMs);
    const [below, normal, infos] = await Promise.all([
      api.subjects(names.jobs, `${names.subject}.>`),
      api.subjects(names.jobs, names.subject),
      Promise.all(lanes.all.map((lane) => api.consumerInfo(lane.stream, lane.consumer))),
    ]);
    const consumers = new Map<Lane, ConsumerInfo>();
    lanes.all.forEach((lane, at) => {
      const info = infos[at];
      if (info !== undefined) consumers.set(lane, info);
    });
    const subjects = new Map([...below, ...normal]);
    const later = [...below.keys()]
      .map((subject) => ({ subject, dueAt: parseLater(subject)?.dueAt }))
      .filter((one): one is { subject: string; dueAt: number } => one.dueAt !== undefined)
      .sort((a, b) => a.dueAt - b.dueAt);
    if (later.length > 0) await core.readClock(session, verb, timeoutMs);
    const at = core.clock.earliest(core.now());
    const due = later.filter((one) => one.dueAt <= at).length;
    return { session, api, consumers, subjects, later: later.map((one) => one.subject), due };
  }

  /** Messages of a lane that were handed out (`held`) or not yet (`ready`), oldest first. */
  async #peekLane(
    { api, consumers }: Standing,
    lane: Lane,
    state: "ready" | "held",
    limit: number,
  ): Promise<PeekedJob[]> {
    const info = consumers.get(lane);
    const filter = lane.kind === "source" ? (info?.config.filter_subject ?? ">") : lane.subject;
    const border = info?.delivered.stream_seq ?? 0;
    // Whatever lies up to the floor is settled, though a crashed server may still have it.
    let from = state === "ready" ? border + 1 : (info?.ack_floor.stream_seq ?? 0) + 1;
    const found: PeekedJob[] = [];
    while (found.length < limit && (state === "ready" || from <= border)) {
      const [one] = await api.get(lane.stream, [{ seq: from, next_by_subj: filter || ">" }]);
      if (one === undefined || (state === "held" && one.sequence > border)) break;
      from = one.sequence + 1;
      const envelope = readEnvelope(one.headerText);
      const mine = this.#core.leases.held(lane, one.sequence);
      const attempts =
        state === "held" ? (mine?.attempt ?? envelope.attemptsBefore + 1) : envelope.attemptsBefore;
      found.push(peeked(one, envelope, state, attempts, priorityOf(lane.level)));
    }
    return found;
  }

  async #peekLater(
    { api }: Standing,
    subjects: readonly string[],
    state: "ready" | "delayed",
  ): Promise<PeekedJob[]> {
    const stored = await api.get(
      this.#core.names.jobs,
      subjects.map((subject) => ({ last_by_subj: subject })),
    );
    return stored.flatMap((one) => {
      if (one === undefined) return [];
      const later = parseLater(one.subject);
      const envelope = readEnvelope(one.headerText);
      const job = peeked(one, envelope, state, envelope.attemptsBefore, priorityOf(later?.level ?? 1));
      if (state === "ready") return [job];
      const { delayMs } = envelope;
      return [{ ...job, dueAt: delayMs === undefined ? (later?.dueAt ?? 0) : one.storedAt + delayMs }];
    });
  }

  async #peekDead(limit: number, timeoutMs: number): Promise<PeekedJob[]> {
    const session = await this.#core.link.session("peek", timeoutMs);
    const found: PeekedJob[] = [];
    for await (const page of this.#dead(new Api(session, "peek", timeoutMs))) {
      for (const one of page) {
        const envelope = readEnvelope(one.headerText);
        found.push({
          ...peeked(one, envelope, "dead", envelope.attemptsBefore, priorityIn(envelope)),
          error: envelope.error ?? "",
          diedAt: one.storedAt,
        });
      }
      if (found.length >= limit) break;
    }
    return found.slice(0, limit);
  }

  /** All dead letters, oldest first, page by page. */
  async *#dead(api: Api): AsyncGenerator<StoredMessage[]> {
    const { dead } = this.#core.names;
    const { state } = await api.streamInfo(dead);
    for (let from = Math.max(1, state.first_seq); from <= state.last_seq; from += AT_ONCE) {
      const count = Math.min(AT_ONCE, state.last_seq - from + 1);
      const stored = await api.get(
        dead,
        Array.from({ length: count }, (_, at) => ({ seq: from + at })),
      );
      yield stored.filter((one) => one !== undefined);
    }
  }

  /**
   * Removes what a lane has that nobody holds. Where something is held the stream cannot tell the two apart, but the consumer can: it is asked for what is
   * new, and that is acked.
   */
  async #clearLane(standing: Standing, lane: Lane, timeoutMs: number): Promise<number> {
    const { api, consumers, session } = standing;
    const info = consumers.get(lane);
    const pending = info?.num_pending ?? standing.subjects.get(lane.subject) ?? 0;
    if (pending === 0) return 0;
    if (lane.kind !== "source" && (info === undefined || info.num_ack_pending === 0)) {
      return api.purge(lane.stream, lane.subject);
    }
    let removed = 0;
    while (removed < pending) {
      const batch = Math.min(AT_ONCE, pending - removed, this.#core.limits.maxBatch);
      const got = await this.#ackNew(session, lane, batch, timeoutMs);
      removed += got;
      if (got < batch) break;
    }
    return removed;
  }

  /** Takes up to `batch` messages and acks those that were never handed out; the others are left to their own end. */
  async #ackNew(session: Session, lane: Lane, batch: number, timeoutMs: number): Promise<number> {
    this.#serial += 1;
    const line = new Line(session, lane, `${this.#core.name}-clear-${this.#serial}`, this.#core.stray);
    const replies: Address[] = [];
    const timer = setTimeout(() => line.giveUp(), timeoutMs);
    try {
      await new Promise<void>((resolve, reject) =>
        line.pull(new AckPull(batch, replies, resolve, reject), 0),
      );
    } finally {
      clearTimeout(timer);
      line.retire();
    }
    const fresh = replies.filter((reply) => parseAckSubject(reply)?.delivered === 1);
    await session.call(
      "clear",
      timeoutMs,
      fresh.map(({ text }) => ({ subject: text, payload: "+ACK" })),
    );
    return fresh.length;
  }
}

function idOf(one: StoredMessage, envelope: Envelope): string {
  return envelope.id ?? `seq:${one.sequence}`;
}

function priorityIn({ priority }: Envelope): Priority {
  return priority === "high" || priority === "low" ? priority : "normal";
}

function peeked(
  one: StoredMessage,
  envelope: Envelope,
  state: JobState,
  attempts: number,
  priority: Priority,
): PeekedJob {
  return {
    id: idOf(one, envelope),
    state,
    attempts,
    enqueuedAt: envelope.enqueuedAt ?? one.storedAt,
    priority,
    headers: envelope.headers,
    body: bodyOf(one.data),
  };
}

/** A pull for the sake of acks alone. */
class AckPull extends LinePull {
  readonly #replies: Address[];
  readonly #resolve: () => void;
  readonly #reject: (error: Error) => void;

  constructor(batch: number, replies: Address[], resolve: () => void, reject: (error: Error) => void) {
    super(batch);
    this.#replies = replies;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  override take({ reply }: Incoming): void {
    if (reply !== undefined) this.#replies.push(reply);
  }

  override ended(): void {
    this.#resolve();
  }

  override failed(error: Error): void {
    this.#reject(error);
  }
}
