/**
 * Verdicts. An ack leaves as it is. Whatever else becomes of a job is a copy of it, published where it belongs and confirmed there, before the original
 * is acked: so a crash between the two leaves it twice, never not at all.
 *
 * JetStream's own ways (a negative ack, with a delay) would be shorter. But the server counts each hand-out and cannot tell one that was given back from
 * one whose holder died, and a job that waits for its retry would stay among those that are held.
 *
 * @module
 */

import type { Settlement, SettleResult, Verdict } from "../../src/broker.ts";
import { BrokerError } from "../../src/errors.ts";
import { readPubAck, StreamGoneError } from "./api.ts";
import type { Core } from "./core.ts";
import { EncodedHeaders, errorHeader, H, type HeaderList, ownHeaders, readEnvelope } from "./envelope.ts";
import type { Lane } from "./lane.ts";
import type { Held } from "./leases.ts";
import { laterTail, levelOf, levelTail, returnedTail } from "./names.ts";
import { AnswerTail } from "./outgoing.ts";
import { placeOf } from "./raw.ts";
import type { Outgoing, Session } from "./session.ts";

const ACK: Word = wordOf("+ACK");
/** As an ack, but the server tells operators of it (an advisory). A reason behind it would make 2.9 overlook it. */
const TERM: Word = wordOf("+TERM");
/** Extends the server's wait for an ack. */
export const WPI = new AnswerTail("+WPI");

/** A try to give back takes at most this share of a lease, and after one that failed there is a pause of so many milliseconds. */
const RELEASE_TRIES = 8;
const RELEASE_PAUSE_MS = 50;

/** What is said of a delivery. */
interface Word {
  readonly text: string;
  readonly tail: AnswerTail;
}

function wordOf(text: string): Word {
  return { text, tail: new AnswerTail(text) };
}

/** A copy of a job on its way to where it belongs. */
interface Move {
  readonly held: Held;
  readonly subject: string;
  readonly stream: string;
  readonly headers: HeaderList;
}

export class Settling {
  readonly #core: Core;
  /** What is given back without anybody waiting for it. */
  readonly #background = new Set<Promise<void>>();
  #isClosing = false;

  constructor(core: Core) {
    this.#core = core;
  }

  settle(settlements: readonly Settlement[], timeoutMs: number): Promise<readonly SettleResult[]> {
    const core = this.#core;
    const acks: Held[] = [];
    const others: [Held, Verdict][] = [];
    const results: SettleResult[] = [];
    const seen = settlements.length > 1 ? new Set<Held>() : undefined;
    const now = core.now();
    for (const { delivery, verdict } of settlements) {
      const held = core.leases.find(delivery, now);
      results.push(typeof held === "string" ? held : "done");
      if (typeof held === "string" || seen?.has(held) === true) continue;
      seen?.add(held);
      if (verdict.kind === "ack") acks.push(held);
      else others.push([held, verdict]);
    }
    if (acks.length + others.length === 0) return Promise.resolve(results);
    const { live } = core.link;
    const ended =
      live !== undefined && others.length === 0
        ? this.#end(live, acks, ACK, "settle", timeoutMs, now)
        : this.#settleBoth(acks, others, timeoutMs);
    return ended.then(() => results);
  }

  async #settleBoth(
    acks: readonly Held[],
    others: readonly (readonly [Held, Verdict])[],
    timeoutMs: number,
  ): Promise<void> {
    const session = await this.#core.link.session("settle", timeoutMs);
    const parts = [
      this.#end(session, acks, ACK, "settle", timeoutMs),
      this.#moveAll(session, others, "settle", timeoutMs),
    ];
    // Each part goes its whole way whatever becomes of the other; sent again, what is done is known to be.
    const ended = await Promise.allSettled(parts);
    for (const part of ended) if (part.status === "rejected") throw part.reason;
  }

  /** Gives deliveries back uncharged. If it fails, it goes on by itself. */
  async release(helds: readonly Held[], verb: string, timeoutMs: number): Promise<void> {
    try {
      await this.#release(helds, verb, timeoutMs);
    } catch (error) {
      this.releaseLater(helds);
      throw error;
    }
  }

  /** Gives deliveries back as soon as it can be done. If it cannot, they come back when the server's wait for them ends. Never rejects. */
  releaseLater(helds: readonly Held[]): void {
    if (helds.length === 0) return;
    const going = this.#releaseInTime(helds).finally(() => this.#background.delete(going));
    this.#background.add(going);
  }

  /** Resolves when nothing is on its way that nobody waits for; what has failed by then is not tried again. Never rejects. */
  async idle(): Promise<void> {
    this.#isClosing = true;
    while (this.#background.size > 0) await Promise.all(this.#background);
  }

  /** Tries again what failed: a copy may be stored whose original was not acked, and then both would run. Never rejects. */
  async #releaseInTime(helds: readonly Held[]): Promise<void> {
    const core = this.#core;
    const until = core.now() + core.leaseMs / 2;
    do {
      try {
        const leftMs = until - core.now();
        return await this.#release(
          helds,
          "claim",
          Math.max(1, Math.min(leftMs, core.leaseMs / RELEASE_TRIES)),
        );
      } catch {
        await new Promise((resolve) => setTimeout(resolve, RELEASE_PAUSE_MS));
      }
    } while (!this.#isClosing && core.now() < until);
    for (const held of helds) core.leases.settled(held, core.now());
  }

  async #release(helds: readonly Held[], verb: string, timeoutMs: number): Promise<void> {
    const session = await this.#core.link.session(verb, timeoutMs);
    await this.#moveAll(
      session,
      helds.filter((held) => !held.lost).map((held) => [held, { kind: "release" }]),
      verb,
      timeoutMs,
    );
  }

  async #moveAll(
    session: Session,
    verdicts: readonly (readonly [Held, Verdict])[],
    verb: string,
    timeoutMs: number,
  ): Promise<void> {
    const core = this.#core;
    const delays = verdicts.some(([, verdict]) => verdict.kind === "retry" && verdict.delayMs > 0);
    if (delays) await core.readClock(session, verb, timeoutMs);
    // In the order of their places, so that what is given back together comes again in its old order.
    const sorted = verdicts
      .map(([held, verdict]) => ({ held, verdict, place: placeOf(held.message) }))
      .sort((a, b) => (a.place < b.place ? -1 : a.place > b.place ? 1 : 0));
    const moves: Move[] = [];
    const messages: Outgoing[] = [];
    const moved: Held[] = [];
    const dead: Held[] = [];
    let failed: unknown;
    const largest = Math.min(session.maxPayload, core.maxMessageBytes);
    for (const { held, verdict, place } of sorted) {
      const move = this.#move(held, verdict, place);
      const headers = new EncodedHeaders(move.headers);
      const size = headers.size + held.message.incoming.data.length;
      if (size <= largest) {
        moves.push(move);
        messages.push({ subject: move.subject, payload: held.message.incoming.data, headers });
      } else {
        // Whatever published it left no room. Tried again and again it would hold up everybody else's verdicts.
        core.leases.givenUp(held, core.now());
        failed ??= tooLarge(verb, held, size, largest);
      }
    }
    const replies = await session.call(verb, timeoutMs, messages);
    replies.forEach((reply, at) => {
      const { held, stream, subject } = moves[at] as Move;
      try {
        readPubAck(verb, reply, stream);
        if (stream === core.names.dead) dead.push(held);
        else {
          moved.push(held);
          core.stored(subject);
        }
      } catch (error) {
        failed ??= error;
      }
    });
    await Promise.all([
      this.#end(session, moved, ACK, verb, timeoutMs),
      this.#end(session, dead, TERM, verb, timeoutMs),
    ]);
    if (failed instanceof StreamGoneError) await core.makeAnew();
    if (failed !== undefined) throw failed;
  }

  /**
   * Ends deliveries at the server, and makes sure that it knows: by the answer to a pull that left right after, which it reads in order, or by its answer to
   * the last ack of each lane, which stands for all before it.
   */
  #end(
    session: Session,
    helds: readonly Held[],
    word: Word,
    verb: string,
    timeoutMs: number,
    now = this.#core.now(),
  ): Promise<void> {
    if (helds.length === 0) return Promise.resolve();
    const { leases } = this.#core;
    return new Promise((resolve, reject) => {
      const done = () => {
        const endedAt = this.#core.now();
        for (const held of helds) leases.settled(held, endedAt);
        resolve();
      };
      session.sayOnly(word.tail, helds);
      session.prove(now, (isProven) => {
        if (isProven) return done();
        if (!session.isUp) return reject(session.lost(verb));
        this.#confirm(session, helds, word, verb, timeoutMs).then(done, reject);
      });
    });
  }

  /** Acks once more the last of each lane, and then the server says so. */
  async #confirm(
    session: Session,
    helds: readonly Held[],
    word: Word,
    verb: string,
    timeoutMs: number,
  ): Promise<void> {
    const last = new Map<Lane, Held>();
    for (const held of helds) last.set(held.message.lane, held);
    const replies = await session.say(verb, timeoutMs, word.text, [...last.values()]);
    for (const reply of replies) {
      if (reply.headers?.code !== 503) continue;
      const lanes = [...last.keys()].map((one) => `${one.consumer} of ${one.stream}`).join(", ");
      throw new BrokerError(
        "nats",
        verb,
        `Cannot ${verb}: nobody takes the acks; is a consumer gone (${lanes})?`,
      );
    }
  }

  #move(held: Held, verdict: Verdict, place: string): Move {
    const { names } = this.#core;
    const level = levelOf(held.priority);
    const common: HeaderList = [
      [H.messageId, `move:${nameOf(held)}`],
      [H.id, held.id],
      [H.enqueuedAt, String(held.enqueuedAt)],
      // Whoever has them may have spoiled those of the delivery.
      ...ownHeaders(readEnvelope(held.message.incoming.headers).headers),
    ];
    switch (verdict.kind) {
      case "release":
        return {
          held,
          stream: names.jobs,
          subject: names.subject + returnedTail(level),
          headers: [
            ...common,
            [H.place, place],
            [H.attempts, String(held.attempt - 1)],
            ...(held.suspect ? ([[H.suspect, "1"]] as const) : []),
          ],
        };
      case "dead":
        return {
          held,
          stream: names.dead,
          subject: names.deadSubject,
          headers: [
            ...common,
            [H.attempts, String(verdict.attempts ?? held.attempt)],
            [H.priority, held.priority],
            [H.error, errorHeader(verdict.error)],
          ],
        };
      case "retry":
        return this.#retry(held, verdict.delayMs, common);
      case "ack":
        throw new TypeError("Cannot move a job that is acked");
    }
  }

  #retry(held: Held, delayMs: number, common: HeaderList): Move {
    const { names, clock } = this.#core;
    const level = levelOf(held.priority);
    const headers: HeaderList = [...common, [H.attempts, String(held.attempt)]];
    if (!(delayMs > 0))
      return { held, stream: names.jobs, subject: names.subject + levelTail(level), headers };
    const dueAt = clock.latest(this.#core.now()) + Math.ceil(delayMs);
    const { streamSequence, delivered } = held.message.info;
    const unique = `m${streamSequence}-${delivered}-${held.message.lane.kind}`;
    return {
      held,
      stream: names.jobs,
      subject: names.subject + laterTail(dueAt, level, unique),
      headers: [...headers, [H.delay, String(Math.ceil(delayMs))]],
    };
  }
}

/** Names a hand-out for all time: a copy made of it is made once. A stream that was made anew counts from 1 again, so the sequence alone would not do. */
function nameOf({ message: { info } }: Held): string {
  return `${info.stream}:${info.streamSequence}:${info.storedNs}:${info.delivered}`;
}

function tooLarge(verb: string, { id }: Held, size: number, largest: number): BrokerError {
  return new BrokerError(
    "nats",
    verb,
    `Cannot ${verb} job ${id}: with the headers of a retry or a dead letter it has ${size} bytes, and max_payload or max_msg_size allow ${largest}; raise them. It can be acked only, and comes again when its lease would have ended`,
  );
}
