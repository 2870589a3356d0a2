/**
 * Claims, by the ids of their leases: each collects once, however often it is sent.
 *
 * @module
 */
import type { ClaimReply, ClaimRequest } from "../../src/broker.ts";
import { Chain, Chained } from "../../src/chain.ts";
import type { Core } from "./core.ts";
import { countedHandOuts, holdAll, type Raw, receive } from "./deliveries.ts";
import type { Exhausted } from "./exhausted.ts";
import { Gathering } from "./gathering.ts";
import { type Held, Lease } from "./leases.ts";
import type { Provisioning } from "./provisioning.ts";
import { type Settling, WPI } from "./settling.ts";

const NO_MORE: ClaimReply = Object.freeze({ deliveries: Object.freeze([]) as readonly [] });

/** A claim waits at most this share of the lease: whoever counts the lease from the sending of the claim must not find it nearly over. */
const WAIT_SHARE = 1 / 4;

/** A claim that is not answered yet. */
class UnderWay extends Chained {
  readonly leaseId: string;
  claiming: Promise<ClaimReply> | undefined;
  gathering: Gathering | undefined;
  constructor(leaseId: string) {
    super();
    this.leaseId = leaseId;
  }
}

export class Claiming {
  readonly #core: Core;
  readonly #provisioning: Provisioning;
  readonly #settling: Settling;
  readonly #exhausted: Exhausted;
  readonly #underWay = new Chain<UnderWay>();
  /** How often something was given back without a claim of its own. */
  #given = 0;
  /** What came for claims that had failed by then: kept a while for the claim's copy. */
  readonly #late = new Map<string, { raws: Raw[]; timer: ReturnType<typeof setTimeout> | undefined }>();

  constructor(core: Core, provisioning: Provisioning, settling: Settling, exhausted: Exhausted) {
    this.#core = core;
    this.#exhausted = exhausted;
    this.#provisioning = provisioning;
    this.#settling = settling;
    core.stray = (lane, message) => {
      const raw = receive(lane, message, core.now());
      if (raw !== undefined) this.#giveBack([raw]);
    };
  }

  claim(request: ClaimRequest, timeoutMs: number): Promise<ClaimReply> {
    const { leaseId } = request;
    const known = this.#underWay.find((one) => one.leaseId === leaseId);
    if (known?.claiming !== undefined) return known.claiming;
    const underWay = new UnderWay(leaseId);
    this.#underWay.add(underWay);
    underWay.claiming = this.#claim(request, timeoutMs, underWay);
    return underWay.claiming;
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

  /** One function, for each that is waited for costs a turn of the microtask queue. */
  async #claim(request: ClaimRequest, timeoutMs: number, underWay: UnderWay): Promise<ClaimReply> {
    const core = this.#core;
    const { leaseId } = request;
    try {
      const now = core.now();
      if (!core.leases.isNew(leaseId)) {
        const held = core.leases.get(leaseId, now);
        if (held !== undefined) return await this.#again(held, timeoutMs);
        if (core.leases.isOver(leaseId, now)) return NO_MORE;
      }
      const gathering = new Gathering({
        core,
        now,
        provisioning: this.#provisioning,
        exhausted: this.#exhausted,
        request,
        timeoutMs,
        longestWaitMs: Math.min(core.leaseMs * WAIT_SHARE, core.limits.maxWaitMs),
        late: (raw) => this.#cameLate(leaseId, raw),
      });
      gathering.raws.push(...this.#takeLate(leaseId));
      underWay.gathering = gathering;
      try {
        if (gathering.raws.length === 0) {
          const first = gathering.first();
          const got = first === undefined ? undefined : await first;
          if (got === request.max) gathering.filled();
          else await gathering.run(got);
        }
      } catch (error) {
        // What has come is good, whatever became of the rest.
        if (gathering.raws.length === 0) throw error;
      } finally {
        underWay.gathering = undefined;
      }
      if (gathering.raws.some(isAgain) && core.clock.isStale(core.now())) await this.#readClock(timeoutMs);
      return this.#hold(leaseId, request.max, gathering.raws);
    } finally {
      this.#underWay.delete(underWay);
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

  #hold(leaseId: string, max: number, raws: Raw[]): ClaimReply {
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
    this.#holdAll(raws, lease, now);
    if (lease.open > 0) core.leases.add(lease, now);
    else core.leases.bar(leaseId, now);
    const deliveries = lease.slots;
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
    const copy = this.#underWay.find((one) => one.leaseId === leaseId)?.gathering;
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
