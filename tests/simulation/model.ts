/**
 * The independent model of the broker: what the contract says it must answer, from the verbs seen at its door. It knows nothing of any
 * adapter: jobs, leases and deadlines are kept here a second time, as plainly as can be, and each answer is compared.
 *
 * @module
 */
import type {
  ClaimReply,
  ClaimRequest,
  Delivery,
  Enqueued,
  NewJob,
  RenewResult,
  Settlement,
  SettleResult,
} from "../../src/broker.ts";
import { checkLevels, checkOrder } from "./model_order.ts";
import { checkDelivery, checkNextDue, type JobView, type LeaseView } from "./model_views.ts";
import type { Fail } from "./violation.ts";

/** An ended lease's id is remembered at least this long; later an adapter may have forgotten it. */
const REMEMBERED_MS = 60_000;

const LEVELS = ["high", "normal", "low"];

export class QueueModel {
  readonly name: string;
  readonly jobs = new Map<string, JobView>();
  readonly leases = new Map<string, LeaseView>();
  readonly #leaseMs: number;
  readonly #dedupeWindowMs: number;
  readonly #fail: Fail;
  readonly #told: () => void;
  readonly #enqueues = new Map<string, number>();
  readonly #acceptedAt = new Map<string, number>();
  readonly #passedOver: [number, number, number] = [0, 0, 0];
  readonly #waiters = new Set<() => void>();
  readonly #dead = new Set<JobView>();
  #paused = false;
  #place = 0;
  /** Jobs not yet acked or dead. */
  open = 0;
  /** How often what happened here. */
  readonly tally = new Map<string, number>();

  constructor(name: string, leaseMs: number, dedupeWindowMs: number, fail: Fail, changed: () => void) {
    this.name = name;
    this.#leaseMs = leaseMs;
    this.#dedupeWindowMs = dedupeWindowMs;
    this.#fail = fail;
    this.#told = changed;
  }

  /** Calls back once after the next change; answers what takes it back. */
  onceChanged(fn: () => void): () => void {
    this.#waiters.add(fn);
    return () => this.#waiters.delete(fn);
  }

  /** Jobs that a machine holds under leases that the broker's clock still grants. */
  *heldBy(holder: string, now: number): Iterable<JobView> {
    for (const lease of this.leases.values()) {
      if (lease.over || lease.holder !== holder || lease.deadline <= now) continue;
      for (const slot of lease.slots.values()) if (slot.state === "held") yield slot.job;
    }
  }

  /** How many jobs are in a state. */
  count(state: JobView["state"]): number {
    let count = 0;
    for (const job of this.jobs.values()) if (job.state === state) count += 1;
    return count;
  }

  /** When the next delayed job is due or the next lease runs out. */
  nextChangeAt(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const job of this.jobs.values()) if (job.state === "delayed") next = Math.min(next, job.dueAt);
    for (const lease of this.leases.values()) if (!lease.over) next = Math.min(next, lease.deadline);
    return next;
  }

  /** Whether a claim would bring something. */
  claimable(now: number): boolean {
    if (this.#paused) return false;
    for (const job of this.jobs.values()) if (this.#canBeClaimed(job, now)) return true;
    return false;
  }

  enqueued(requestId: string, jobs: readonly NewJob[], answers: readonly Enqueued[], now: number): void {
    this.#joinEarliest(now);
    const again = (this.#enqueues.get(requestId) ?? Number.NEGATIVE_INFINITY) > now;
    this.#enqueues.set(
      requestId,
      again ? (this.#enqueues.get(requestId) as number) : now + this.#dedupeWindowMs,
    );
    if (answers.length !== jobs.length) {
      this.#fail("wrongAnswer", `enqueue of ${jobs.length} jobs was answered with ${answers.length} results`);
    }
    if (again) return this.#count("enqueuedAgain");
    jobs.forEach((job, index) => {
      const duplicate = answers[index]?.duplicate === true;
      const known = (this.#acceptedAt.get(job.id) ?? Number.NEGATIVE_INFINITY) + this.#dedupeWindowMs > now;
      if (duplicate !== (job.dedupe && known)) {
        this.#fail(
          "duplicate",
          `job ${job.id} was ${duplicate ? "refused as a duplicate" : "accepted again"}`,
        );
      }
      if (duplicate) this.#count("duplicate");
      else this.#accept(job, now);
    });
    this.#changed();
  }

  claimed(holder: string, request: ClaimRequest, reply: ClaimReply, now: number): void {
    this.#joinEarliest(now);
    const { deliveries } = reply;
    if (deliveries.length > request.max) {
      this.#fail("wrongAnswer", `a claim of ${request.max} was answered with ${deliveries.length}`);
    }
    const known = this.leases.get(request.leaseId);
    // A lease that ended long ago may have been forgotten; then its claim counts as a new one.
    const forgotten = known?.over === true && now - known.endedAt >= REMEMBERED_MS && deliveries.length > 0;
    if (known !== undefined && !forgotten) this.#claimedAgain(known, deliveries, now);
    else this.#claimedNew(holder, request, deliveries, now);
    checkNextDue(request, reply, now, this.claimable(now) ? now : this.nextChangeAt(), this.#fail);
    this.#changed();
  }

  settled(settlements: readonly Settlement[], results: readonly SettleResult[], now: number): void {
    this.#joinEarliest(now);
    for (const [index, settlement] of settlements.entries()) this.#settled(settlement, results[index], now);
    this.#changed();
  }

  /** No claim takes anything until it is resumed. */
  setPaused(paused: boolean): void {
    this.#paused = paused;
    this.#count(paused ? "paused" : "resumed");
    this.#changed();
  }

  /** All dead letters were put back: with no attempt charged, at the tail. */
  redriven(count: number): void {
    let dead = 0;
    for (const job of [...this.#dead]) {
      this.#dead.delete(job);
      this.#count("redriven");
      dead += 1;
      this.#place += 1;
      job.state = "ready";
      job.charged = 0;
      job.suspect = false;
      job.reason = undefined;
      job.earliest = this.#place;
      job.latest = this.#place;
      this.open += 1;
    }
    if (count !== dead) this.#fail("wrongAnswer", `redrive was answered ${count} for ${dead} dead letters`);
    this.#changed();
  }

  renewed(leaseIds: readonly string[], results: readonly RenewResult[], now: number): void {
    leaseIds.forEach((id, index) => {
      const lease = this.leases.get(id);
      const held = lease !== undefined && !lease.over;
      if ((results[index] === "held") !== held) {
        this.#fail(
          "wrongAnswer",
          `renewing lease ${id} was answered ${results[index]}, which it is ${held ? "not" : ""}`,
        );
      }
      this.#count(held ? "renewed" : "renewedInVain");
      if (held) lease.deadline = now + this.#leaseMs;
    });
  }

  abandoned(leaseIds: readonly string[], now: number): void {
    this.#joinEarliest(now);
    for (const id of leaseIds) {
      const lease = this.leases.get(id);
      if (lease === undefined) this.#bar(id, now);
      else if (!lease.over) {
        for (const slot of lease.slots.values()) {
          if (slot.state !== "held") continue;
          slot.state = "lost";
          this.#giveBack(slot.job);
        }
        this.#end(lease, now);
      }
    }
    this.#changed();
  }

  #count(what: string): void {
    this.tally.set(what, (this.tally.get(what) ?? 0) + 1);
  }

  #changed(): void {
    this.#told();
    const waiters = [...this.#waiters];
    this.#waiters.clear();
    for (const fn of waiters) fn();
  }

  #accept(job: NewJob, now: number): void {
    if (this.jobs.has(job.id)) this.#fail("duplicate", `job ${job.id} was accepted twice`);
    this.#acceptedAt.set(job.id, now);
    this.#place += 1;
    const delayed = job.delayMs > 0;
    this.jobs.set(job.id, {
      id: job.id,
      body: job.body,
      level: LEVELS.indexOf(job.priority),
      state: delayed ? "delayed" : "ready",
      charged: 0,
      suspect: false,
      dueAt: now + job.delayMs,
      earliest: delayed ? Number.NaN : this.#place,
      latest: delayed ? Number.NaN : this.#place,
      lease: undefined,
      reason: undefined,
    });
    this.open += 1;
  }

  /** A claim of a lease that is known: the same deliveries while it is held, none when it is over. */
  #claimedAgain(lease: LeaseView, deliveries: readonly Delivery[], now: number): void {
    this.#count(lease.over ? "claimedAfterEnd" : "claimedAgain");
    if (lease.over) {
      if (deliveries.length > 0) {
        this.#fail(
          "wrongAnswer",
          `a copy of claim ${lease.id}, which is over, took ${deliveries.length} jobs`,
        );
      }
      return;
    }
    const held = [...lease.slots].filter(([, slot]) => slot.state === "held");
    const same =
      held.length === deliveries.length &&
      held.every(([token, slot]) => deliveries.some((one) => one.token === token && one.id === slot.job.id));
    if (!same) {
      this.#fail(
        "wrongAnswer",
        `claim ${lease.id}, sent again, was answered with ${deliveries.length} jobs; it holds ${held.length}`,
      );
    }
    for (const one of deliveries) checkDelivery(one, this.jobs.get(one.id), 0, this.#fail);
    lease.deadline = now + this.#leaseMs;
  }

  #claimedNew(holder: string, request: ClaimRequest, deliveries: readonly Delivery[], now: number): void {
    if (!this.#paused) {
      this.#takeBack(now);
      this.#joinLatest(now);
    }
    const could = this.#paused ? [] : [...this.jobs.values()].filter((job) => this.#canBeClaimed(job, now));
    if (this.#paused && deliveries.length > 0) {
      this.#fail("wrongAnswer", `a claim of a paused queue brought ${deliveries.length} jobs`);
    }
    const lease: LeaseView = {
      id: request.leaseId,
      holder,
      slots: new Map(),
      deadline: now + this.#leaseMs,
      over: deliveries.length === 0,
      endedAt: now,
    };
    this.leases.set(lease.id, lease);
    for (const one of deliveries) this.#deliver(lease, one, now);
    const delivered = new Set(deliveries.map((one) => one.id));
    const left = could.filter((job) => !delivered.has(job.id));
    if (deliveries.length < request.max && left.length > 0) {
      this.#fail(
        "stranded",
        `claim ${lease.id} of ${request.max} brought ${deliveries.length} and left ${left[0]?.id}`,
      );
    }
    const taken = deliveries.map((one) => this.jobs.get(one.id)).filter((job) => job !== undefined);
    checkOrder(taken, left, this.#fail);
    checkLevels(taken, left, this.#passedOver, this.#fail);
  }

  #deliver(lease: LeaseView, one: Delivery, now: number): void {
    const job = this.jobs.get(one.id);
    if (job === undefined)
      return this.#fail("wrongAnswer", `job ${one.id}, which nobody enqueued, was delivered`);
    if (job.state === "held") {
      const other = job.lease as LeaseView;
      return this.#fail(
        "twoHolders",
        `job ${job.id} was given to ${lease.holder} while ${other.holder} holds it until ${other.deadline}`,
      );
    }
    if (job.state === "acked" || job.state === "dead") {
      return this.#fail("deliveredAfterEnd", `job ${job.id} was delivered although it is ${job.state}`);
    }
    if (job.state === "delayed") {
      return this.#fail("wrongAnswer", `job ${job.id} was delivered at ${now}; it is due at ${job.dueAt}`);
    }
    checkDelivery(one, job, 1, this.#fail);
    if (one.leaseId !== lease.id) this.#fail("wrongAnswer", `a delivery of ${lease.id} names ${one.leaseId}`);
    job.charged += 1;
    job.state = "held";
    job.lease = lease;
    if (lease.slots.has(one.token))
      this.#fail("wrongAnswer", `lease ${lease.id} names two jobs ${one.token}`);
    lease.slots.set(one.token, { job, state: "held" });
  }

  #settled({ delivery, verdict }: Settlement, result: SettleResult | undefined, now: number): void {
    const lease = this.leases.get(delivery.leaseId);
    const slot = lease?.slots.get(delivery.token);
    if (lease === undefined || slot === undefined || slot.job.id !== delivery.id) {
      return this.#fail("wrongAnswer", `a verdict names a delivery of ${delivery.id} that never was`);
    }
    const expected: SettleResult = slot.state === "lost" ? "lost" : "done";
    const forgotten = lease.over && now - lease.endedAt >= REMEMBERED_MS;
    if (result !== expected && !(forgotten && result === "lost")) {
      const promised = expected === "lost" ? "lateFence" : "wrongAnswer";
      this.#fail(promised, `${verdict.kind} of job ${delivery.id} was answered ${result}; it is ${expected}`);
    }
    if (slot.state !== "held") return this.#count(slot.state === "lost" ? "lost" : "settledAgain");
    slot.state = "done";
    this.#count(verdict.kind);
    const { job } = slot;
    switch (verdict.kind) {
      case "ack":
        this.#close(job, "acked", undefined);
        break;
      case "dead":
        this.#close(job, "dead", verdict.error);
        break;
      case "release":
        this.#giveBack(job);
        break;
      case "retry":
        job.suspect = false;
        job.lease = undefined;
        job.dueAt = now + verdict.delayMs;
        this.#place += 1;
        job.state = verdict.delayMs > 0 ? "delayed" : "ready";
        job.earliest = job.state === "ready" ? this.#place : Number.NaN;
        job.latest = job.earliest;
        break;
    }
    if ([...lease.slots.values()].every((one) => one.state !== "held")) this.#end(lease, now);
  }

  #close(job: JobView, state: "acked" | "dead", reason: string | undefined): void {
    job.state = state;
    job.reason = reason;
    if (state === "dead") this.#dead.add(job);
    job.lease = undefined;
    this.open -= 1;
  }

  /** Given back unstarted: uncharged, as suspect as it was, in the place it had. */
  #giveBack(job: JobView): void {
    job.charged -= 1;
    job.state = "ready";
    job.lease = undefined;
  }

  /** A claim takes the jobs of leases that ran out back: they are suspects, and their attempt stays charged. */
  #takeBack(now: number): void {
    for (const lease of this.leases.values()) {
      if (lease.over || lease.deadline > now) continue;
      for (const slot of lease.slots.values()) {
        if (slot.state !== "held") continue;
        slot.state = "lost";
        this.#count("takenBack");
        slot.job.suspect = true;
        slot.job.state = "ready";
        slot.job.lease = undefined;
      }
      this.#end(lease, now);
    }
  }

  #end(lease: LeaseView, now: number): void {
    lease.over = true;
    lease.endedAt = now;
  }

  #bar(id: string, now: number): void {
    this.#count("barred");
    this.leases.set(id, { id, holder: "", slots: new Map(), deadline: now, over: true, endedAt: now });
  }

  #canBeClaimed(job: JobView, now: number): boolean {
    if (job.state === "ready") return true;
    if (job.state === "delayed") return job.dueAt <= now;
    return job.state === "held" && (job.lease as LeaseView).deadline <= now;
  }

  /** Jobs that came due join the tail at some time between then and the next claim. */
  #joinEarliest(now: number): void {
    for (const job of this.jobs.values()) {
      if (job.state === "delayed" && job.dueAt <= now && Number.isNaN(job.earliest)) {
        job.earliest = this.#place + 0.5;
      }
    }
  }

  #joinLatest(now: number): void {
    this.#place += 1;
    for (const job of this.jobs.values()) {
      if (job.state !== "delayed" || job.dueAt > now) continue;
      job.latest = this.#place;
      job.state = "ready";
    }
  }
}
