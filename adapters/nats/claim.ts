/**
 * Claims, by the ids of their leases: each collects once, however often it is sent.
 *
 * @module
 */
import type { ClaimReply, ClaimRequest } from "../../src/broker.ts";
import { Chain } from "../../src/chain.ts";
import { ApiError, STREAM_NOT_FOUND, StreamGoneError } from "./api.ts";
import type { Core } from "./core.ts";
import { holdAll } from "./deliveries.ts";
import type { Exhausted } from "./exhausted.ts";
import { Gathering, type GatheringParts } from "./gathering.ts";
import { type Held, Lease } from "./leases.ts";
import type { Provisioning } from "./provisioning.ts";
import { countedHandOuts, type Raw, receive } from "./raw.ts";
import { type Settling, WPI } from "./settling.ts";

const NO_MORE: ClaimReply = Object.freeze({ deliveries: Object.freeze([]) as readonly [] });

/** A claim waits at most this share of the lease: whoever counts the lease from the sending of the claim must not find it nearly over. */
const WAIT_SHARE = 1 / 4;

export class Claiming {
  readonly #core: Core;
  readonly #settling: Settling;
  readonly #parts: GatheringParts;
  readonly #underWay = new Chain<Gathering>();
  /** How often something was given back without a claim of its own. */
  #given = 0;
  /** What came for claims that had failed by then: kept a while for the claim's copy. */
  readonly #late = new Map<string, { raws: Raw[]; timer: ReturnType<typeof setTimeout> | undefined }>();

  constructor(core: Core, provisioning: Provisioning, settling: Settling, exhausted: Exhausted) {
    this.#core = core;
    this.#settling = settling;
    this.#parts = {
      core,
      provisioning,
      exhausted,
      late: (claim, raw) => this.#cameLate(claim.request.leaseId, raw),
      ended: (claim, error) => this.#gathered(claim, error),
    };
    core.stray = (lane, message) => {
      const raw = receive(lane, message, core.now());
      if (raw !== undefined) this.#giveBack([raw]);
    };
  }

  claim(request: ClaimRequest, timeoutMs: number): Promise<ClaimReply> {
    const { leaseId } = request;
    const core = this.#core;
    const known = this.#claimOf(leaseId);
    if (known !== undefined) return known.answer;
    const now = core.now();
    if (!core.leases.begin(leaseId)) {
      const held = core.leases.get(leaseId, now);
      if (held !== undefined) return this.#again(held, timeoutMs);
      if (core.leases.isOver(leaseId, now)) return Promise.resolve(NO_MORE);
    }
    const longestWaitMs = Math.min(core.leaseMs * WAIT_SHARE, core.limits.maxWaitMs);
    const claim = new Gathering(this.#parts, request, timeoutMs, longestWaitMs, now);
    if (this.#late.size > 0) claim.raws.push(...this.#takeLate(leaseId));
    this.#underWay.add(claim);
    claim.start();
    return claim.answer;
  }

  #claimOf(leaseId: string): Gathering | undefined {
    return this.#underWay.size === 0
      ? undefined
      : this.#underWay.find(({ request }) => request.leaseId === leaseId);
  }

  /** Ends leases whatever came under them; their jobs go back uncharged. */
  async abandon(leaseIds: readonly string[], timeoutMs: number): Promise<void> {
    const core = this.#core;
    const now = core.now();
    const open: Held[] = [];
    for (const id of leaseIds) {
      const lease = core.leases.get(id, now);
      const claim = this.#claimOf(id);
      if (claim !== undefined) claim.isAbandoned = true;
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

  #gathered(claim: Gathering, error: Error | undefined): void {
    const core = this.#core;
    // What has come is good, whatever became of the rest.
    if (error !== undefined && claim.raws.length === 0) return this.#failed(claim, error);
    if (claim.raws.some(isAgain) && core.clock.isStale(core.now())) {
      void this.#readClock(claim.timeoutMs).then(() => this.#answer(claim));
    } else this.#answer(claim);
  }

  #failed(claim: Gathering, error: Error): void {
    this.#underWay.delete(claim);
    if (!(error instanceof ApiError) || error.errCode !== STREAM_NOT_FOUND) return claim.reject(error);
    // It is told, for there may have been jobs in it; the next claim finds the new one.
    const gone = new StreamGoneError("claim", this.#core.names.jobs);
    void this.#core.makeAnew().then(() => claim.reject(gone));
  }

  #answer(claim: Gathering): void {
    this.#underWay.delete(claim);
    try {
      claim.resolve(this.#hold(claim));
    } catch (error) {
      claim.reject(error);
    }
  }

  /** How old a message is says how often it can have been in somebody's hands. Never rejects: without that the server's count counts. */
  async #readClock(timeoutMs: number): Promise<void> {
    const core = this.#core;
    try {
      const session = await core.link.session("claim", timeoutMs);
      await core.readClock(session, "claim", timeoutMs);
    } catch {
      // A job too many runs alone, or is charged an attempt.
    }
  }

  /** Puts messages under a lease. */
  #holdAll(raws: readonly Raw[], lease: Lease, now: number): void {
    const { clock, leaseMs, leases } = this.#core;
    for (const raw of raws) {
      if (!isAgain(raw) || clock.isStale(now)) continue;
      const ageMs = clock.latest(now) - raw.info.storedMs;
      raw.handOuts = countedHandOuts(raw.info.delivered, ageMs, leaseMs);
    }
    holdAll(raws, lease, leases, now);
  }

  /** The claim of a lease that is held: the same deliveries, renewed. */
  async #again(lease: Lease, timeoutMs: number): Promise<ClaimReply> {
    const core = this.#core;
    const session = await core.link.session("claim", timeoutMs);
    const sentAt = core.now();
    session.sayOnly(WPI, lease.openSlots());
    await session.flush("claim", timeoutMs);
    lease.deadline = sentAt + core.leaseMs;
    return { deliveries: lease.openSlots() };
  }

  #hold({ request: { leaseId, max }, raws, isAbandoned }: Gathering): ClaimReply {
    const core = this.#core;
    const now = core.now();
    // While the answer was on its way.
    if (isAbandoned || core.paused) {
      if (raws.length > 0) this.#giveBack(raws);
      core.leases.bar(leaseId, now);
      return NO_MORE;
    }
    // A copy of a claim may find what both it and the first one asked for.
    if (raws.length > max) this.#giveBack(raws.splice(max));
    let sentAt = now;
    for (const raw of raws) sentAt = Math.min(sentAt, raw.sentAt);
    const lease = new Lease(leaseId, sentAt + core.leaseMs);
    this.#holdAll(raws, lease, now);
    if (lease.open > 0) core.leases.add(lease, now);
    else core.leases.bar(leaseId, now);
    // A list of its receiver's own.
    const deliveries = lease.openSlots();
    return deliveries.length < max ? { deliveries, nextDueMs: this.#nextDueMs(now) } : { deliveries };
  }

  #nextDueMs(now: number): number | undefined {
    const { later, clock, paused } = this.#core;
    if (paused || later.nextDueAt === Number.POSITIVE_INFINITY || clock.isStale(now)) return undefined;
    return Math.max(0, Math.ceil(clock.surelyAt(later.nextDueAt) - now));
  }

  /** A message for a claim that has failed by now: its copy may be on its way; if none comes, the message goes back. */
  #cameLate(leaseId: string, raw: Raw): void {
    const core = this.#core;
    if (core.leases.isOver(leaseId, core.now())) return this.#giveBack([raw]);
    const copy = this.#claimOf(leaseId);
    if (copy !== undefined) return void copy.raws.push(raw);
    // It was answered with what had come by then.
    if (core.leases.get(leaseId, core.now()) !== undefined) return this.#giveBack([raw]);
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
    this.#given += 1;
    // No caller's lease has such an id.
    const lease = new Lease(`given back ${this.#given}`, now + core.leaseMs);
    this.#holdAll(raws, lease, now);
    if (lease.open > 0) core.leases.add(lease, now);
    this.#settling.releaseLater(lease.openSlots());
  }
}

/** Whether the server handed it out before. How long others' consumers wait for an ack is not known to have been the same all along. */
function isAgain({ info, lane }: Raw): boolean {
  return info.delivered > 1 && lane.kind !== "source";
}
