/**
 * Lanes: the subjects of a queue from which jobs are handed out, each through a consumer of its own, and what is known of each without asking.
 *
 * @module
 */
import { LEVELS, type Level, levelTail, priorityOf, type QueueNames, returnedTail } from "./names.ts";
import type { NatsSource } from "./options.ts";
import type { Session } from "./session.ts";

/** How long news are trusted although a pull found nothing, in milliseconds: the server tells of a message before its consumers know of it. */
const NEWS_HOLD_MS = 50;
/** The gap before the first look at a lane that may hold jobs of others, in milliseconds; it doubles. */
const FIRST_PROBE_MS = 100;

/** A consumer that hands out again is looked at no sooner than so many milliseconds after the last time. */
const LOOK_AGAIN_MS = 1_000;

export class Lane {
  readonly level: Level;
  /** `returned`: jobs that were given back. `source`: somebody else's stream. */
  readonly kind: "main" | "returned" | "source";
  readonly stream: string;
  readonly consumer: string;
  /** What jobs of this lane are published to; empty of a source. */
  readonly subject: string;
  /** The connection over which its consumer was last seen. */
  seenOver: Session | undefined;
  /** When that was, in milliseconds. */
  seenAt = Number.NEGATIVE_INFINITY;
  /** The newest message that was ever held here, by sequence. One above it is not held for sure. */
  newest = 0;
  /** Whether a claim would probably find something. */
  ready = false;
  /** When to look whether jobs that somebody holds came back: nobody tells of that. `Infinity` when it was seen to be empty. */
  probeAt = Number.POSITIVE_INFINITY;
  #misses = 0;
  #stirredAt = Number.NEGATIVE_INFINITY;

  constructor(level: Level, kind: Lane["kind"], stream: string, consumer: string, subject: string) {
    this.level = level;
    this.kind = kind;
    this.stream = stream;
    this.consumer = consumer;
    this.subject = subject;
  }

  /** Something came in. */
  stir(now: number): void {
    this.ready = true;
    this.#stirredAt = now;
    this.#misses = 0;
  }

  /** A message was handed out again. So somebody vanished; or the consumer was changed, and waits for acks shorter than leases last. */
  handedOutAgain(now: number): void {
    if (now - this.seenAt >= LOOK_AGAIN_MS) this.seenOver = undefined;
  }

  /** A pull brought less than was asked for: what is left, if anything, is held. */
  ranShort(now: number, longestMs: number): void {
    this.ready = now - this.#stirredAt < NEWS_HOLD_MS;
    this.probeAt = now + Math.min(longestMs, FIRST_PROBE_MS * 2 ** Math.min(this.#misses, 20));
    this.#misses += 1;
  }

  /** How many messages the stream has for it, held ones included. */
  counted(messages: number): void {
    this.ready = messages > 0;
    this.probeAt = Number.POSITIVE_INFINITY;
    if (messages === 0) this.#misses = 0;
  }
}

/** The lanes of a queue, by level, within a level in the order in which they are served. */
export class Lanes {
  readonly all: readonly Lane[];
  /** The one that idle claims wait on. */
  readonly primary: Lane;

  constructor(names: QueueNames, source: NatsSource | undefined) {
    const all: Lane[] = [];
    for (const level of LEVELS) {
      const priority = priorityOf(level);
      const returned = names.subject + returnedTail(level);
      all.push(new Lane(level, "returned", names.jobs, `eddy_returned_${priority}`, returned));
      all.push(new Lane(level, "main", names.jobs, `eddy_${priority}`, names.subject + levelTail(level)));
      if (level === 1 && source !== undefined) {
        all.push(new Lane(1, "source", source.stream, source.consumer, ""));
      }
    }
    this.all = all;
    this.primary = all.find((lane) => lane.kind === (source ? "source" : "main") && lane.level === 1) as Lane;
  }

  bySubject(subject: string): Lane | undefined {
    return this.all.find((lane) => lane.subject === subject);
  }

  ofLevel(level: Level): Lane[] {
    return this.all.filter((lane) => lane.level === level);
  }

  /** Whether a claim has anything to look at beside the primary. */
  get onlyPrimary(): boolean {
    for (const lane of this.all) if (lane.ready && lane !== this.primary) return false;
    return true;
  }

  /** When the next lane has to be looked at, on the clock of {@linkcode Lane.probeAt}. */
  get nextProbeAt(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const lane of this.all) if (lane !== this.primary) next = Math.min(next, lane.probeAt);
    return next;
  }

  /** Nothing is known any more: the connection is new. */
  forget(): void {
    for (const lane of this.all) {
      lane.seenOver = undefined;
    }
  }
}
