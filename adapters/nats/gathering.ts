/**
 * What one claim collects: which lanes it looks at, in which order, and how it waits.
 *
 * @module
 */
import type { ClaimRequest } from "../../src/broker.ts";
import { onAbort } from "./aborting.ts";
import type { Core } from "./core.ts";
import type { Raw } from "./deliveries.ts";
import type { Exhausted } from "./exhausted.ts";
import type { PerLevel } from "./fairness.ts";
import type { Lane } from "./lane.ts";
import { moveDue } from "./move_due.ts";
import { LEVELS, type Level } from "./names.ts";
import type { Provisioning } from "./provisioning.ts";
import { pullOnce } from "./pulling.ts";
import type { Session } from "./session.ts";

/**
 * The server confirms a message before its consumers know of it. So a claim that may not wait calls the queue empty only when it still is after so many
 * milliseconds.
 */
const SECOND_LOOK_MS = 20;
/** The pause after a wait that ended at once with nothing, in milliseconds; it doubles up to the longest. */
const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 250;

export interface GatheringOptions {
  readonly core: Core;
  /** What the broker's clock says. */
  readonly now: number;
  readonly provisioning: Provisioning;
  readonly exhausted: Exhausted;
  readonly request: ClaimRequest;
  /** How long the whole may take beyond its wait, in milliseconds. */
  readonly timeoutMs: number;
  /** The longest wait, in milliseconds. */
  readonly longestWaitMs: number;
  /** Is given a message that came when its pull had been given up. */
  readonly late: (raw: Raw) => void;
}

export class Gathering {
  /** What has come so far. */
  readonly raws: Raw[] = [];
  readonly #options: GatheringOptions;
  readonly #core: Core;
  readonly #begunAt: number;
  readonly #waitUntil: number;
  readonly #failAt: number;

  constructor(options: GatheringOptions) {
    const { core, request, longestWaitMs, timeoutMs, now } = options;
    this.#options = options;
    this.#core = core;
    this.#begunAt = now;
    this.#waitUntil = now + Math.min(request.waitMs, longestWaitMs);
    this.#failAt = this.#waitUntil + timeoutMs;
  }

  /**
   * The first look, where it is as simple as mostly: at the primary lane alone, over a connection that knows how things stand. Answers how many came, which
   * {@linkcode Gathering.run} or {@linkcode Gathering.filled} is to be told; `undefined` where it is not so simple, and nothing was done.
   */
  first(): Promise<number> | undefined {
    const core = this.#core;
    const { link, lanes, later, paused, source } = core;
    const session = link.live;
    if (session === undefined || !core.isAttached(session) || paused || source !== undefined)
      return undefined;
    if (lanes.primary.seenOver !== session || later.size > 0 || !lanes.onlyPrimary) return undefined;
    const now = this.#begunAt;
    const probeAt = lanes.nextProbeAt;
    if (probeAt <= now) return undefined;
    const waitMs = Math.min(this.#waitUntil, probeAt) - now;
    return this.#pullFrom(session, lanes.primary, this.#options.request.max, waitMs, now);
  }

  /** {@linkcode Gathering.first} brought all that was wanted. */
  filled(): void {
    this.#core.fairness.gave([0, this.#options.request.max, 0], [false, true, false]);
  }

  /**
   * Collects up to `max` messages: what is there at once, or the first that come.
   *
   * @param first how many {@linkcode Gathering.first} brought; `undefined` where it did not look.
   */
  async run(first: number | undefined): Promise<void> {
    const core = this.#core;
    const { request, timeoutMs } = this.#options;
    const { signal } = request;
    let looksAgain = request.waitMs === 0;
    let asksAgain = request.waitMs === 0;
    let pauseMs = FIRST_PAUSE_MS;
    let from = this.#begunAt;
    let hasLooked = first !== undefined;
    if (first !== undefined && (await this.#hasEnough(first))) return;
    for (;;) {
      if (!hasLooked) {
        const session =
          core.link.live ?? (await core.link.session("claim", this.#failAt - core.now(), signal));
        if (!core.isAttached(session)) await core.attach(session, timeoutMs);
        // A claim that waits hears of a resume; one that may not would miss one whose news is still on its way.
        if (core.paused && asksAgain) {
          asksAgain = false;
          await core.askPaused(session, timeoutMs);
        }
        from = core.now();
        if (core.paused) await this.#untilResumed();
        else if (await this.#look(session, from)) return;
      }
      hasLooked = false;
      if (this.#isOver()) return;
      const now = core.now();
      // Even a claim that may not wait looks again when it was just told of jobs.
      const told = !core.lanes.onlyPrimary && !core.paused;
      if (now + 1 >= this.#waitUntil && !told) {
        if (!looksAgain || core.paused) return;
        looksAgain = false;
        await sleep(SECOND_LOOK_MS);
      } else if (now - from < pauseMs) {
        await sleep(pauseMs);
        pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2);
      } else pauseMs = FIRST_PAUSE_MS;
    }
  }

  #isOver(): boolean {
    const { request } = this.#options;
    return request.signal?.aborted === true || this.#core.leases.isOver(request.leaseId, this.#core.now());
  }

  /** Looks once, and waits as long as nothing else is known to come. Answers whether anything came. */
  #look(session: Session, now: number): Promise<boolean> {
    const core = this.#core;
    const isPlain = core.source === undefined && core.lanes.nextProbeAt > now && core.later.size === 0;
    return isPlain ? this.#wait(session, now) : this.#lookAround(session);
  }

  /** As {@linkcode Gathering.#look}, where jobs may have come back, come due, or run out of a source's hand-outs. */
  async #lookAround(session: Session): Promise<boolean> {
    const core = this.#core;
    const { exhausted, timeoutMs } = this.#options;
    if (core.source !== undefined) await exhausted.look(session, timeoutMs);
    if (core.lanes.nextProbeAt <= core.now()) await core.probe(session, timeoutMs);
    try {
      while (core.later.size > 0 && (await moveDue(core, session, timeoutMs))) {
        if (await this.#round(session, 0)) return true;
      }
    } catch (error) {
      // A full stream has no room for what came due until others are finished: those must go on.
      if (await this.#round(session, 0)) return true;
      throw error;
    }
    return this.#wait(session, core.now());
  }

  /** A round that waits until something is known to come, or the claim's wait is over. */
  #wait(session: Session, now: number): Promise<boolean> {
    const { clock, lanes, later } = this.#core;
    const wakeAt = Math.min(this.#waitUntil, lanes.nextProbeAt, clock.surelyAt(later.nextDueAt));
    return this.#round(session, Math.max(0, wakeAt - now));
  }

  /** A look at all lanes that may have something; if none has, a wait for the primary. Answers whether anything came. */
  async #round(session: Session, waitMs: number): Promise<boolean> {
    const { lanes } = this.#core;
    const { max } = this.#options.request;
    if (!lanes.onlyPrimary && (await this.#share(session, max)) > 0) return true;
    return this.#hasEnough(await this.#pull(session, lanes.primary, max, waitMs));
  }

  /** The primary lane gave so many. Answers whether that will do. */
  async #hasEnough(got: number): Promise<boolean> {
    const { lanes, fairness, link } = this.#core;
    const { max } = this.#options.request;
    if (got > 0) fairness.gave([0, got, 0], [false, true, false]);
    // News of another lane may have come with the answer: what is there goes along.
    if (got > 0 && got < max && !lanes.onlyPrimary && link.live !== undefined) {
      await this.#share(link.live, max - got);
    }
    // A copy's late messages count as well.
    return this.raws.length > 0;
  }

  /** Shares what is wanted among the levels. Answers how many came. */
  async #share(session: Session, wanted: number): Promise<number> {
    const { lanes, fairness } = this.#core;
    const of = LEVELS.map((level) => lanes.ofLevel(level));
    const counts: PerLevel<number> = [0, 0, 0];
    const short: PerLevel<boolean> = [false, false, false];
    const mayHave = () =>
      LEVELS.map(
        (level) =>
          !short[level] && (of[level] as Lane[]).some((lane) => lane.ready || lane === lanes.primary),
      ) as PerLevel<boolean>;
    const pullLevel = async (level: Level, batch: number): Promise<void> => {
      let left = batch;
      for (const lane of of[level] as Lane[]) {
        if (left === 0) break;
        if (lane.ready || lane === lanes.primary) left -= await this.#pull(session, lane, left, 0);
      }
      counts[level] += batch - left;
      if (left > 0) short[level] = true;
    };
    let left = wanted;
    while (left > 0) {
      const quota = fairness.allot(left, mayHave());
      if (quota[0] + quota[1] + quota[2] === 0) break;
      await Promise.all(
        LEVELS.map((level) => (quota[level] > 0 ? pullLevel(level, quota[level]) : undefined)),
      );
      left = wanted - counts[0] - counts[1] - counts[2];
    }
    fairness.gave(counts, mayHave());
    return wanted - left;
  }

  #pull(session: Session, lane: Lane, batch: number, waitMs: number): Promise<number> {
    if (lane.seenOver === session) return this.#pullFrom(session, lane, batch, waitMs);
    const leftMs = Math.max(1, this.#failAt - this.#core.now());
    return this.#options.provisioning
      .ensureConsumer(session, lane, leftMs)
      .then(() => this.#pullFrom(session, lane, batch, waitMs));
  }

  #pullFrom(
    session: Session,
    lane: Lane,
    batch: number,
    waitMs: number,
    sentAt = this.#core.now(),
  ): Promise<number> {
    const core = this.#core;
    const { request, late } = this.#options;
    return pullOnce(core, {
      session,
      lane,
      batch,
      sentAt,
      waitMs,
      failAt: this.#failAt,
      signal: request.signal,
      take: (raw, isLate) => (isLate ? late(raw) : void this.raws.push(raw)),
      hasNews: (until) => core.paused || !core.lanes.onlyPrimary || this.#isDueBy(until) || this.#isOver(),
    });
  }

  /** Whether a delayed job is due before a wait ends. What is due in the moment when it ends needs no telling. */
  #isDueBy(until: number): boolean {
    const { clock, later } = this.#core;
    return later.size > 0 && (clock.isUnread || clock.surelyAt(later.nextDueAt) + 2 < until);
  }

  /** Resolves when the queue is resumed, the wait is over, or it was ended. */
  #untilResumed(): Promise<void> {
    const core = this.#core;
    const { signal } = this.#options.request;
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        unlisten();
        unabort();
        resolve();
      };
      const timer = setTimeout(done, Math.max(0, this.#waitUntil - core.now()));
      const unlisten = core.listen(() => {
        if (!core.paused || this.#isOver()) done();
      });
      const unabort = onAbort(signal, done);
    });
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
