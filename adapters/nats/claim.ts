/**
 * Claims: one pull request where only the primary lane has jobs, a few more where there are priorities, jobs given back, or jobs come due.
 *
 * @module
 */
import type { Msg } from "nats.ws";
import type { ClaimReply, ClaimRequest } from "../../src/broker.ts";
import { BrokerError } from "../../src/errors.ts";
import type { Core } from "./core.ts";
import { holdAll, type Raw } from "./deliveries.ts";
import type { Exhausted } from "./exhausted.ts";
import type { PerLevel } from "./fairness.ts";
import type { Lane } from "./lane.ts";
import { type Held, Lease } from "./leases.ts";
import { moveDue } from "./move_due.ts";
import { LEVELS, type Level } from "./names.ts";
import type { Provisioning } from "./provisioning.ts";
import type { Session } from "./session.ts";
import { type Settling, WPI } from "./settling.ts";

const NO_MORE: ClaimReply = Object.freeze({ deliveries: Object.freeze([]) as readonly [] });

/** The longest gap between looks at a lane whose jobs others hold, as a share of the lease. */
const PROBE_SHARE = 1 / 4;
/** A claim waits at most this share of the lease: whoever counts the lease from the sending of the claim must not find it nearly over. */
const WAIT_SHARE = 1 / 4;

/**
 * The server confirms a message before its consumers know of it. So a lane is called empty only when nothing came for this long, in milliseconds: one that
 * a whole claim depends on, and one that somebody has just told of.
 */
const EMPTY_GRACE_MS = 25;
const NEWS_GRACE_MS = 3;

/** What one claim has found so far. */
interface Finding {
  readonly raws: Raw[];
}

export class Claiming {
  readonly #core: Core;
  readonly #provisioning: Provisioning;
  readonly #settling: Settling;
  readonly #exhausted: Exhausted;
  readonly #underWay = new Map<string, Promise<ClaimReply>>();
  readonly #findings = new Map<string, Finding>();
  /** What came for claims that had failed by then: kept a while for the claim's copy. */
  readonly #late = new Map<string, { raws: Raw[]; timer: ReturnType<typeof setTimeout> | undefined }>();

  constructor(core: Core, provisioning: Provisioning, settling: Settling, exhausted: Exhausted) {
    this.#core = core;
    this.#exhausted = exhausted;
    this.#provisioning = provisioning;
    this.#settling = settling;
    core.stray = (lane, message) =>
      this.#giveBack([{ lane, message, reply: message.reply ?? "", sentAt: core.now() }]);
  }

  claim(request: ClaimRequest, timeoutMs: number): Promise<ClaimReply> {
    const known = this.#underWay.get(request.leaseId);
    if (known !== undefined) return known;
    const claiming = this.#claim(request, timeoutMs).finally(() => {
      this.#underWay.delete(request.leaseId);
    });
    this.#underWay.set(request.leaseId, claiming);
    return claiming;
  }

  /** Ends leases whatever came under them; their jobs go back uncharged. */
  async abandon(leaseIds: readonly string[], timeoutMs: number): Promise<void> {
    const core = this.#core;
    const now = core.now();
    const open: Held[] = [];
    for (const id of leaseIds) {
      const lease = core.leases.get(id, now);
      if (lease === undefined) core.leases.bar(id, now);
      else {
        open.push(...lease.openSlots());
        core.leases.end(lease, now);
      }
      const late = this.#takeLate(id);
      if (late.length > 0) this.#giveBack(late);
    }
    if (open.length > 0) await this.#settling.release(open, "abandon", timeoutMs);
  }

  /** Ends every timer. */
  close(): void {
    for (const { timer } of this.#late.values()) clearTimeout(timer);
    this.#late.clear();
  }

  async #claim(request: ClaimRequest, timeoutMs: number): Promise<ClaimReply> {
    const core = this.#core;
    const { leaseId } = request;
    const held = core.leases.get(leaseId, core.now());
    if (held !== undefined) return this.#again(held, timeoutMs);
    if (core.leases.isOver(leaseId, core.now())) return NO_MORE;
    const finding: Finding = { raws: this.#takeLate(leaseId) };
    this.#findings.set(leaseId, finding);
    try {
      if (finding.raws.length === 0) await this.#gather(request, timeoutMs, finding);
    } catch (error) {
      // What has come is good, whatever became of the rest.
      if (finding.raws.length === 0) throw error;
    } finally {
      this.#findings.delete(leaseId);
    }
    return this.#hold(leaseId, request.max, finding);
  }

  /** The claim of a lease that is held: the same deliveries, renewed. */
  async #again(lease: Lease, timeoutMs: number): Promise<ClaimReply> {
    const core = this.#core;
    const session = await core.link.session("claim", timeoutMs);
    const sentAt = core.now();
    const replies = lease.openSlots().map((one) => one.reply);
    await session.say("claim", timeoutMs, WPI, replies);
    await session.flush("claim", timeoutMs);
    lease.deadline = sentAt + core.leaseMs;
    return { deliveries: lease.openSlots().map((held) => held.delivery) };
  }

  #hold(leaseId: string, max: number, { raws }: Finding): ClaimReply {
    const core = this.#core;
    const now = core.now();
    // It was abandoned, or the queue was paused, while the answer was on its way.
    if (core.leases.isOver(leaseId, now) || core.paused) {
      if (raws.length > 0) this.#giveBack(raws);
      core.leases.bar(leaseId, now);
      return NO_MORE;
    }
    // A copy of a claim may find what both it and the first one asked for.
    if (raws.length > max) this.#giveBack(raws.splice(max));
    let sentAt = now;
    for (const raw of raws) sentAt = Math.min(sentAt, raw.sentAt);
    const lease = new Lease(leaseId, sentAt + core.leaseMs);
    holdAll(raws, lease, core.leases, now);
    if (lease.open > 0) core.leases.add(lease, now);
    else core.leases.bar(leaseId, now);
    const deliveries = lease.slots.map((held) => held.delivery);
    return deliveries.length < max ? { deliveries, nextDueMs: this.#nextDueMs(now) } : { deliveries };
  }

  #nextDueMs(now: number): number | undefined {
    const { later, clock, paused } = this.#core;
    if (paused || later.nextDueAt === Number.POSITIVE_INFINITY || clock.isStale(now)) return undefined;
    return Math.max(0, Math.ceil(clock.surelyAt(later.nextDueAt) - now));
  }

  /** Collects up to `max` messages: what is there at once, or the first that come. */
  async #gather(request: ClaimRequest, timeoutMs: number, finding: Finding): Promise<void> {
    const core = this.#core;
    const { max, signal, leaseId } = request;
    const waitUntil = core.now() + Math.min(request.waitMs, core.leaseMs * WAIT_SHARE);
    const failAt = waitUntil + timeoutMs;
    // Even one that may not wait looks again when it was just told of jobs.
    const again = () => core.now() + 1 < waitUntil || (!core.lanes.onlyPrimary && !core.paused);
    for (let first = true; first || again(); first = false) {
      if (signal?.aborted === true) return;
      const session = await core.link.session("claim", failAt - core.now(), signal);
      await core.attach(session, timeoutMs);
      if (core.paused) {
        await this.#pausedUntil(waitUntil, signal);
        continue;
      }
      if (core.source !== undefined) await this.#exhausted.look(session, timeoutMs);
      if (core.lanes.nextProbeAt <= core.now()) await core.probe(session, timeoutMs);
      while (await moveDue(core, session, timeoutMs)) {
        await this.#round(session, max, 0, failAt, request, finding);
        if (finding.raws.length > 0) return;
      }
      const wakeAt = Math.min(waitUntil, core.lanes.nextProbeAt, core.clock.surelyAt(core.later.nextDueAt));
      const waitMs = Math.max(0, wakeAt - core.now());
      await this.#round(session, max, waitMs, failAt, request, finding);
      if (finding.raws.length > 0 || core.leases.isOver(leaseId, core.now())) return;
    }
  }

  /** A look at all lanes that may have something; if none has, a wait for the primary. */
  async #round(
    session: Session,
    max: number,
    waitMs: number,
    failAt: number,
    request: ClaimRequest,
    finding: Finding,
  ): Promise<void> {
    const core = this.#core;
    const pull = (lane: Lane, batch: number, wait: number) =>
      this.#pull(session, lane, batch, wait, failAt, request, finding);
    if (!core.lanes.onlyPrimary && (await this.#share(max, pull)) > 0) return;
    const got = await pull(core.lanes.primary, max, request.waitMs > 0 ? waitMs : EMPTY_GRACE_MS);
    if (got > 0) core.fairness.gave([0, got, 0], [false, true, false]);
    // News of another lane may have come with the answer: what is there goes along.
    if (got > 0 && got < max && !core.lanes.onlyPrimary) await this.#share(max - got, pull);
  }

  /** Shares a claim among the levels. Answers how many came. */
  async #share(
    max: number,
    pull: (lane: Lane, batch: number, waitMs: number) => Promise<number>,
  ): Promise<number> {
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
        if (lane.ready) left -= await pull(lane, left, lane === lanes.primary ? 0 : NEWS_GRACE_MS);
        else if (lane === lanes.primary) left -= await pull(lane, left, 0);
      }
      counts[level] += batch - left;
      if (left > 0) short[level] = true;
    };
    let left = max;
    while (left > 0) {
      const quota = fairness.allot(left, mayHave());
      if (quota[0] + quota[1] + quota[2] === 0) break;
      await Promise.all(
        LEVELS.map((level) => (quota[level] > 0 ? pullLevel(level, quota[level]) : undefined)),
      );
      left = max - counts[0] - counts[1] - counts[2];
    }
    fairness.gave(counts, mayHave());
    return max - left;
  }

  /** Pulls from one lane. Answers how many came. */
  async #pull(
    session: Session,
    lane: Lane,
    batch: number,
    waitMs: number,
    failAt: number,
    request: ClaimRequest,
    finding: Finding,
  ): Promise<number> {
    const core = this.#core;
    await this.#provisioning.ensureConsumer(session, lane, Math.max(1, failAt - core.now()));
    const line = core.line(session, lane);
    let got = 0;
    let givenUp = false;
    const sentAt = core.now();
    const until = sentAt + waitMs;
    const take = (message: Msg) => {
      const raw: Raw = { lane, message, reply: message.reply ?? "", sentAt };
      if (givenUp) return this.#cameLate(request.leaseId, raw);
      got += 1;
      finding.raws.push(raw);
    };
    let timedOut = false;
    const stop = () => line.retire();
    const isNews = () =>
      core.paused ||
      !core.lanes.onlyPrimary ||
      this.#isDueBy(until) ||
      request.signal?.aborted === true ||
      core.leases.isOver(request.leaseId, core.now());
    const unlisten = waitMs > 0 ? core.listen(() => isNews() && stop()) : undefined;
    if (waitMs > 0) request.signal?.addEventListener("abort", stop);
    const timer = setTimeout(
      () => {
        timedOut = true;
        line.giveUp();
      },
      Math.max(1, failAt - core.now()),
    );
    try {
      // News may have come while the consumer was looked at.
      const end = await line.pull(batch, waitMs > 0 && isNews() ? 0 : waitMs, take);
      if (end === "short" || end === "retired")
        lane.ranShort(core.now(), Math.max(250, core.leaseMs * PROBE_SHARE));
      if (end === "retired" && lane !== core.lanes.primary) lane.stir();
      if (timedOut && got === 0) {
        throw new BrokerError(
          "nats",
          "claim",
          `Cannot claim: ${session.origin} did not answer in time; does the consumer ${lane.consumer} of ${lane.stream} still exist?`,
        );
      }
      return got;
    } catch (error) {
      // The consumer may be the reason; it is looked at again, and made anew where it is gone.
      lane.seenOver = undefined;
      throw error;
    } finally {
      givenUp = true;
      clearTimeout(timer);
      unlisten?.();
      request.signal?.removeEventListener("abort", stop);
      core.putBack(line);
    }
  }

  /** Whether a delayed job is due, or will be, before a wait ends. What is due in the moment when it ends needs no telling. */
  #isDueBy(until: number): boolean {
    const { clock, later } = this.#core;
    return later.size > 0 && (clock.isUnread || clock.surelyAt(later.nextDueAt) + 2 < until);
  }

  /** Resolves when the queue is resumed, the wait is over, or it was ended. */
  #pausedUntil(until: number, signal: AbortSignal | undefined): Promise<void> {
    const core = this.#core;
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        unlisten();
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, Math.max(0, until - core.now()));
      const unlisten = core.listen(() => {
        if (!core.paused) done();
      });
      signal?.addEventListener("abort", done);
    });
  }

  /** A message for a claim that has failed by now: its copy may be on its way; if none comes, the message goes back. */
  #cameLate(leaseId: string, raw: Raw): void {
    const core = this.#core;
    if (core.leases.isOver(leaseId, core.now())) return this.#giveBack([raw]);
    const copy = this.#findings.get(leaseId);
    if (copy !== undefined) return void copy.raws.push(raw);
    const late = this.#late.get(leaseId) ?? { raws: [], timer: undefined };
    this.#late.set(leaseId, late);
    late.raws.push(raw);
    late.timer ??= setTimeout(() => this.#giveBack(this.#takeLate(leaseId)), core.leaseMs * WAIT_SHARE);
  }

  #takeLate(leaseId: string): Raw[] {
    const late = this.#late.get(leaseId);
    if (late === undefined) return [];
    clearTimeout(late.timer);
    this.#late.delete(leaseId);
    return late.raws;
  }

  /** Gives messages back at once, under a lease of their own. If that fails they come back when the server's wait for them ends. */
  #giveBack(raws: readonly Raw[]): void {
    const core = this.#core;
    const now = core.now();
    const lease = new Lease("", now + core.leaseMs);
    holdAll(raws, lease, core.leases, now);
    this.#settling.releaseLater(lease.openSlots());
  }
}
