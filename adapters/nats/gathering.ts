/**
 * What one claim collects: which lanes it looks at, in which order, and how it waits.
 *
 * @module
 */
import type { ClaimReply, ClaimRequest } from "../../src/broker.ts";
import { Chained } from "../../src/chain.ts";
import { asError } from "../../src/requests.ts";
import { onAbort } from "./aborting.ts";
import type { Core } from "./core.ts";
import type { Exhausted } from "./exhausted.ts";
import type { PerLevel } from "./fairness.ts";
import type { Lane } from "./lane.ts";
import { moveDue } from "./move_due.ts";
import { LEVELS, type Level } from "./names.ts";
import type { Provisioning } from "./provisioning.ts";
import { Pulling, type PullListener, type PullOwner, pullOnce } from "./pulling.ts";
import type { Raw } from "./raw.ts";
import type { Session } from "./session.ts";

/**
 * The server confirms a message before its consumers know of it. So a claim that may not wait calls the queue empty only when it still is after so many
 * milliseconds.
 */
const SECOND_LOOK_MS = 20;
/** The pause after a wait that ended at once with nothing, in milliseconds; it doubles up to the longest. */
const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 250;

/** What all claims of a queue share. */
export interface GatheringParts {
  readonly core: Core;
  readonly provisioning: Provisioning;
  readonly exhausted: Exhausted;
  /** Is given a message that came for a claim which was answered, or whose pull had been given up. */
  readonly late: (claim: Gathering, raw: Raw) => void;
  /** The claim has what it gets, or failed with `error`; what had come by then is good all the same. */
  readonly ended: (claim: Gathering, error: Error | undefined) => void;
}

/** A claim. It stands in a chain of those under way until it is answered. */
export class Gathering extends Chained implements PullOwner, PullListener {
  readonly request: ClaimRequest;
  /** What has come so far. */
  readonly raws: Raw[] = [];
  /** How long the whole may take beyond its wait, in milliseconds. */
  readonly timeoutMs: number;
  readonly failAt: number;
  /** What it is answered with. */
  readonly answer: Promise<ClaimReply>;
  resolve!: (reply: ClaimReply) => void;
  reject!: (error: unknown) => void;
  /** Whether it was given back: then it takes nothing. */
  isAbandoned = false;
  readonly #parts: GatheringParts;
  readonly #core: Core;
  readonly #begunAt: number;
  readonly #waitUntil: number;

  /**
   * @param now what the broker's clock says.
   * @param longestWaitMs the longest wait, in milliseconds.
   */
  constructor(
    parts: GatheringParts,
    request: ClaimRequest,
    timeoutMs: number,
    longestWaitMs: number,
    now: number,
  ) {
    super();
    this.#parts = parts;
    this.#core = parts.core;
    this.request = request;
    this.timeoutMs = timeoutMs;
    this.#begunAt = now;
    this.#waitUntil = now + Math.min(request.waitMs, longestWaitMs);
    this.failAt = this.#waitUntil + timeoutMs;
    this.answer = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  get signal(): AbortSignal | undefined {
    return this.request.signal;
  }

  /** Begins. To be called once. */
  start(): void {
    try {
      // What had come late for this claim's first copy will do.
      if (this.raws.length > 0) this.#end(undefined);
      else if (!this.#lookFirst()) this.#goOn(undefined);
    } catch (error) {
      this.#end(asError(error));
    }
  }

  took(raw: Raw, late: boolean): void {
    // Another level's pull may have failed it: it is answered by then, and stands in no chain.
    if (late || this.chain === undefined) this.#parts.late(this, raw);
    else this.raws.push(raw);
  }

  hasNews(until: number): boolean {
    const { paused, lanes } = this.#core;
    return paused || !lanes.onlyPrimary || this.#isDueBy(until) || this.#isOver();
  }

  /** The first look brought so many. */
  ended(got: number): void {
    if (got !== this.request.max) return this.#goOn(got);
    this.#core.fairness.gaveNormalOnly();
    this.#end(undefined);
  }

  /** The first look failed. */
  failed(error: Error): void {
    this.#end(error);
  }

  /**
   * The first look, where it is as simple as mostly: at the primary lane alone, over a connection that knows how things stand. Answers whether it is, and under
   * way then; if not, nothing was done.
   */
  #lookFirst(): boolean {
    const core = this.#core;
    const { link, lanes, later, paused, source } = core;
    const session = link.live;
    if (session === undefined || !core.isAttached(session) || paused || source !== undefined) return false;
    if (lanes.primary.seenOver !== session || later.size > 0 || !lanes.onlyPrimary) return false;
    const now = this.#begunAt;
    const probeAt = lanes.nextProbeAt;
    if (probeAt <= now) return false;
    const waitMs = Math.min(this.#waitUntil, probeAt) - now;
    new Pulling(core, session, lanes.primary, this, this, this.request.max, now).start(waitMs);
    return true;
  }

  #goOn(first: number | undefined): void {
    this.#run(first).then(
      () => this.#end(undefined),
      (error: unknown) => this.#end(asError(error)),
    );
  }

  #end(error: Error | undefined): void {
    this.#parts.ended(this, error);
  }

  /**
   * Collects up to `max` messages: what is there at once, or the first that come.
   *
   * @param first how many the first look brought; `undefined` where there was none.
   */
  async #run(first: number | undefined): Promise<void> {
    const core = this.#core;
    const { request, timeoutMs } = this;
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
          core.link.live ?? (await core.link.session("claim", this.failAt - core.now(), signal));
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
    return this.isAbandoned || this.request.signal?.aborted === true;
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
    const { timeoutMs } = this;
    const { exhausted } = this.#parts;
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
    const { max } = this.request;
    if (!lanes.onlyPrimary && (await this.#share(session, max)) > 0) return true;
    return this.#hasEnough(await this.#pull(session, lanes.primary, max, waitMs));
  }

  /** The primary lane gave so many. Answers whether that will do. */
  async #hasEnough(got: number): Promise<boolean> {
    const { lanes, fairness, link } = this.#core;
    const { max } = this.request;
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

  async #pull(session: Session, lane: Lane, batch: number, waitMs: number): Promise<number> {
    const core = this.#core;
    if (lane.seenOver !== session) {
      const leftMs = Math.max(1, this.failAt - core.now());
      await this.#parts.provisioning.ensureConsumer(session, lane, leftMs);
    }
    return pullOnce(core, session, lane, this, batch, waitMs, core.now());
  }

  /** Whether a delayed job is due before a wait ends. What is due in the moment when it ends needs no telling. */
  #isDueBy(until: number): boolean {
    const { clock, later } = this.#core;
    return later.size > 0 && (clock.isUnread || clock.surelyAt(later.nextDueAt) + 2 < until);
  }

  /** Resolves when the queue is resumed, the wait is over, or it was ended. */
  #untilResumed(): Promise<void> {
    const core = this.#core;
    const { signal } = this.request;
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
