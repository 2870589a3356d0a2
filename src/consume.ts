/**
 * The consume loop of one queue: reserve, claim, run, settle.
 *
 * It is driven by events (a slot came free, a claim was answered, a timer fired) and decides the same way after each of them, in
 * {@linkcode QueueLoop.wake}: start what waits, then see what to send. The rules it keeps:
 *
 * 1. A slot is reserved before a claim.
 * 2. After a stop nothing is claimed and nothing starts.
 * 3. Only the handler's failure rejects a job.
 * 4. Any broker error: backoff with full jitter, an event, and on.
 * 5. Verdicts ride on the next exchange, or leave alone within `settleWithinMs`.
 * 6. A full batch's last jobs hide the next claim's round trip.
 * 7. A suspect on its last attempt runs alone.
 * 8. No promise is left alone.
 * 9. Two claims at the same queue never overlap.
 *
 * @module
 */
import type { JobContext } from "./active_job.ts";
import { Asking } from "./asking.ts";
import { brokerBackoffMs } from "./backoff.ts";
import type { BrokerQueue, ClaimReply, ClaimRequest, SettleResult, Verdict } from "./broker.ts";
import { BrokerLink } from "./broker_link.ts";
import { BrokerRefusedError, LeaseLostError } from "./errors.ts";
import type { Events } from "./events.ts";
import { type HeldDelivery, HeldLease, type LeaseOwner } from "./held.ts";
import { leaseDeadline, renewalDue } from "./lease.ts";
import type { LeaseKeeper } from "./lease_keeper.ts";
import { Looks } from "./looks.ts";
import { Outbox, type OutgoingVerdict } from "./outbox.ts";
import type { CancelTimer, Platform } from "./platform.ts";
import { Reports } from "./reports.ts";
import { asError } from "./requests.ts";
import { type Run, Slots } from "./slots.ts";
import type { SoloGate, SoloMember } from "./solo.ts";
import type { QueueStats } from "./stats.ts";
import { fateOf } from "./triage.ts";
import { type Outcome, verdictOf } from "./verdict.ts";
import type { WorkerQueue } from "./worker.ts";

/** Bounds a run that must end by itself (a drain); a worker has none. */
export interface RunLimiter {
  /** How many of `wanted` jobs a claim may ask for; 0 for none now. */
  room(loop: QueueLoop, wanted: number): number;
  /** Whether a job already held may still be started. */
  mayStart(loop: QueueLoop): boolean;
  /** Jobs came in. */
  took(count: number): void;
  /** A handler is done: how long it took, the requests it made, and how many jobs it had. */
  ran(loop: QueueLoop, ms: number, requests: number, jobs: number): void;
  /** The queue had nothing, and nothing of it is held. */
  emptied(loop: QueueLoop): void;
}

export interface QueueLoopDeps {
  readonly platform: Platform;
  readonly brokerName: string;
  readonly queue: BrokerQueue;
  /** Whether one request settles, renews and claims. */
  readonly exchanges: boolean;
  /** Whether the engine holds a claim open until something comes. */
  readonly waits: boolean;
  readonly watches: boolean;
  readonly worker: WorkerQueue;
  readonly keeper: LeaseKeeper;
  readonly gate: SoloGate;
  readonly events: Events;
  readonly context: JobContext;
  readonly limiter?: RunLimiter | undefined;
  /** What an earlier run learned of the job time, in milliseconds. */
  readonly averageMs?: number | undefined;
  /** Something changed that somebody may be waiting for. */
  readonly changed: () => void;
  /** The broker may lose jobs: this loop has ended. */
  readonly refused: (error: BrokerRefusedError) => void;
}

/** How long an engine that can wait is asked to, in milliseconds. */
const WAIT_MS = 20_000;

const NEVER = Number.POSITIVE_INFINITY;

/** A claim on its way. */
interface PendingClaim {
  readonly leaseId: string;
  readonly max: number;
  readonly slots: number;
  /** Whether it failed before, so that it may have taken jobs whose names never arrived. */
  resent: boolean;
}

export class QueueLoop implements SoloMember, LeaseOwner {
  readonly name: string;
  readonly leaseMs: number;
  readonly renews: boolean;
  readonly asking: Asking;
  readonly #deps: QueueLoopDeps;
  readonly #reports: Reports;
  readonly #link: BrokerLink;
  readonly #slots: Slots;
  readonly #looks: Looks;
  readonly #outbox = new Outbox();
  /** Held, not started. */
  readonly #waiting: HeldDelivery[] = [];
  #phase: "running" | "stopping" | "closed" = "running";
  #waking = false;
  #again = false;
  /** Whether there is reason to believe that a claim would bring something. */
  #hungry = true;
  /** Whether news came while a claim was under way, which its answer may not know of. */
  #woken = false;
  #lastGot = 0;
  #claiming = false;
  #settling = false;
  /** The claim under way, or the one whose answer never came. */
  #unanswered: PendingClaim | undefined;
  #endWait: AbortController | undefined;
  #failures = 0;
  #pausedUntil = 0;
  #held = 0;
  #cancelTimer: CancelTimer | undefined;
  #timerAt = NEVER;

  constructor(deps: QueueLoopDeps) {
    const { platform, queue, worker } = deps;
    this.#deps = deps;
    this.name = queue.name;
    this.leaseMs = queue.limits.leaseMs;
    this.renews = worker.options.renew;
    this.asking = new Asking(worker.options, queue.limits, deps.averageMs);
    this.#reports = new Reports(this.name, deps.events);
    this.#link = new BrokerLink(
      platform,
      deps.brokerName,
      queue,
      worker.options.settings.requestTimeoutMs,
      deps.exchanges,
    );
    this.#slots = new Slots({
      platform,
      run: worker.handler.run,
      timeoutMs: worker.options.timeoutMs,
      context: deps.context,
      ended: (run, outcomes, left) => this.#ended(run, outcomes, left),
    });
    this.#looks = new Looks({
      platform,
      queue,
      watches: deps.watches,
      pollMinMs: worker.options.pollMinMs,
      pollMaxMs: worker.options.pollMaxMs,
      safetyPollMs: worker.options.safetyPollMs,
      look: (woken) => this.#look(woken),
      watchFailed: (error, retryInMs) => this.#reports.brokerError("watch", error, retryInMs),
    });
    deps.gate.join(this);
  }

  /** Begins to consume. Resolves when the watch, where there is one, has been tried. Never rejects. */
  start(): Promise<void> {
    this.wake();
    return this.#looks.start();
  }

  /** From now on nothing is claimed and nothing starts; what waits is given back. */
  stopTaking(): void {
    if (this.#phase !== "running") return;
    this.#phase = "stopping";
    this.#endWait?.abort();
    this.#looks.calm();
    this.#releaseWaiting();
    this.wake();
  }

  /** Aborts the handlers that still run. */
  abortRunning(reason: Error): void {
    this.#slots.abortAll(reason);
  }

  /** How many handlers may run at a time. */
  get slots(): number {
    return this.#deps.worker.options.concurrency;
  }

  /** Handlers running. */
  get running(): number {
    return this.#slots.busy;
  }

  /** Deliveries held and not started. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Deliveries claimed and not settled. */
  get held(): number {
    return this.#held;
  }

  /** Whether every verdict has been taken and no request is under way. */
  get settled(): boolean {
    return (
      this.#phase === "closed" ||
      (this.#outbox.empty && !this.#claiming && !this.#settling && this.#waiting.length === 0)
    );
  }

  quiet(): boolean {
    return this.settled && this.#slots.busy === 0;
  }

  /** Ends the loop. A claim whose answer never came is given back by its lease's id; handlers left running are named. Never rejects. */
  async close(): Promise<void> {
    const unanswered = this.#phase === "closed" ? undefined : this.#unanswered;
    this.#phase = "closed";
    this.#setTimer(NEVER);
    this.#deps.gate.leave(this);
    for (const job of this.#slots.jobs()) this.#reports.abandoned(job.id);
    try {
      if (unanswered !== undefined) await this.#link.abandon([unanswered.leaseId]);
    } catch (error) {
      this.#reports.brokerError("abandon", asError(error), undefined);
    }
    try {
      await this.#looks.close();
    } catch (error) {
      this.#reports.brokerError("watch", asError(error), undefined);
    }
  }

  stats(): QueueStats {
    return {
      queue: this.name,
      ...this.#reports.counters,
      running: this.#slots.busy,
      held: this.#held,
      averageMs: this.asking.averageMs,
      prefetch: this.asking.prefetch,
      roundTripMs: this.asking.roundTripMs,
    };
  }

  /** Decides what to do now. Called after every event; a call from within is made up for at the end of the present one. */
  wake(): void {
    if (this.#waking) {
      this.#again = true;
      return;
    }
    this.#waking = true;
    do {
      this.#again = false;
      if (this.#phase !== "closed") {
        this.#startWaiting();
        this.#send();
      }
    } while (this.#again);
    this.#waking = false;
    if (this.#deps.gate.closed) this.#deps.gate.changed(this);
    this.#deps.changed();
  }

  // --- LeaseOwner: what the keeper asks and tells ---

  renew(leaseIds: readonly string[]): Promise<readonly ("held" | "lost")[]> {
    return this.#link.renew(leaseIds).then(
      (results) => {
        this.#reports.renewed(leaseIds, results);
        return results;
      },
      (error: unknown) => {
        this.#reports.brokerError("renew", asError(error), undefined);
        throw error;
      },
    );
  }

  lost(lease: HeldLease, why: string): void {
    this.#slots.abortLease(lease, (jobId) => new LeaseLostError(jobId, why));
    for (const job of this.#slots.jobs()) if (job.held.lease === lease) this.#lose(job.held, true);
    for (const held of this.#waiting.filter((one) => one.lease === lease)) {
      this.#waiting.splice(this.#waiting.indexOf(held), 1);
      this.#lose(held, false);
    }
    for (const entry of this.#outbox.dropLease(lease)) this.#lose(entry.held, true);
    this.#hungry = true;
    this.wake();
  }

  // --- running ---

  #startWaiting(): void {
    const { worker, limiter, keeper } = this.#deps;
    const { concurrency, batchSize } = worker.options;
    while (this.#waiting.length > 0 && this.#slots.busy < concurrency && this.#phase === "running") {
      // A computing handler may have kept the lease's timer from firing; losing it takes its jobs out of what waits.
      if (keeper.expired((this.#waiting[0] as HeldDelivery).lease)) continue;
      if (limiter !== undefined && !limiter.mayStart(this)) return this.#releaseWaiting();
      this.#startGroup(
        batchSize === 1 ? [this.#waiting.shift() as HeldDelivery] : this.#waiting.splice(0, batchSize),
      );
    }
  }

  #startGroup(group: readonly HeldDelivery[]): void {
    this.#reports.started(group);
    this.#slots.start(group);
  }

  #ended(run: Run, outcomes: readonly Outcome[], left: boolean): void {
    const { platform, worker, keeper, limiter } = this.#deps;
    const now = platform.now();
    const ranMs = (now - run.startedAt) / run.jobs.length;
    let requests = 0;
    run.jobs.forEach((job, index) => {
      requests += job.fetches;
      this.asking.ran(ranMs);
      if (left) this.#reports.abandoned(job.id);
      if (keeper.expired(job.held.lease) || this.#phase === "closed") return;
      const verdict = verdictOf(outcomes[index] as Outcome, {
        attempt: job.attempt,
        maxAttempts: job.maxAttempts,
        retryDelayMs: worker.options.retryDelayMs,
        random: () => platform.random(),
      });
      this.#decide(job.held, verdict, now, ranMs);
    });
    limiter?.ran(this, now - run.startedAt, requests, run.jobs.length);
    this.wake();
  }

  #decide(held: HeldDelivery, verdict: Verdict, now: number, ranMs: number): void {
    this.#outbox.add(held, verdict, now);
    this.#reports.finished(held, verdict, ranMs);
  }

  #releaseWaiting(): void {
    const now = this.#deps.platform.now();
    for (const held of this.#waiting.splice(0)) this.#outbox.add(held, { kind: "release" }, now);
  }

  // --- sending ---

  /** Sends what there is to send, or sets the one timer to the moment when there will be. */
  #send(): void {
    const { platform, gate, exchanges } = this.#deps;
    const now = platform.now();
    // Whoever waits to be alone waits for our claim too.
    if (gate.closed && !gate.owns(this)) this.#endWait?.abort();
    if (now < this.#pausedUntil) return this.#setTimer(this.#pausedUntil);
    let next = NEVER;
    if (this.#phase === "running" && !this.#claiming) {
      const claim = this.#claimNow(now);
      if (typeof claim === "object") return this.#sendClaim(claim);
      next = claim;
    }
    if (this.#outbox.waiting > 0 && !this.#settling && !(this.#claiming && exchanges)) {
      const settleAt = this.#settleAt();
      if (settleAt <= now) this.#sendSettle();
      else next = Math.min(next, settleAt);
    }
    this.#setTimer(next);
  }

  /** When the waiting verdicts are to leave alone: at once when no work is left that would bring a request to ride on. */
  #settleAt(): number {
    const { oldestSince } = this.#outbox;
    const busy = this.#slots.busy > 0 || this.#waiting.length > 0;
    if (this.#phase !== "running" || !busy || oldestSince === undefined) return 0;
    return oldestSince + this.#deps.worker.options.settleWithinMs;
  }

  /** The claim to send now, or the time at which to think of it again. */
  #claimNow(now: number): PendingClaim | number {
    const { platform, gate, worker, limiter, exchanges } = this.#deps;
    if (this.#unanswered !== undefined) return this.#unanswered;
    let slots = worker.options.concurrency - this.#slots.busy;
    let wanted: number;
    if (gate.closed) {
      // Alone: one job, and only when nothing at all is held. Our own verdicts have left by then.
      if (!gate.owns(this) || !this.quiet() || !gate.othersQuiet(this)) return NEVER;
      slots = 1;
      wanted = 1;
    } else if (slots === 0 || this.#waiting.length > 0) {
      if (limiter !== undefined) return NEVER;
      const inMs = this.asking.aheadInMs(
        this.#waiting.length,
        this.#slots.busy,
        this.#slots.runningForMs(now),
      );
      if (inMs === undefined) return NEVER;
      if (inMs > 0) return now + inMs;
      slots = worker.options.concurrency;
      wanted = this.asking.wanted(slots, this.#held);
    } else {
      if (!this.#hungry && !this.#worthALook(exchanges, now)) return NEVER;
      wanted = this.asking.wanted(slots, this.#held);
    }
    const max = limiter === undefined ? wanted : limiter.room(this, wanted);
    return max < 1 ? NEVER : { leaseId: platform.randomId(), max, slots, resent: false };
  }

  /** Whether to look although nothing is expected. */
  #worthALook(exchanges: boolean, now: number): boolean {
    const { limiter } = this.#deps;
    // With verdicts to bring, a look costs nothing.
    if (exchanges && this.#outbox.waiting > 0 && this.#settleAt() <= now) return true;
    if (limiter === undefined || !this.quiet()) return false;
    // A run that must end: after a short claim has been worked off, one more look says whether the queue is empty.
    if (this.#lastGot > 0) return true;
    limiter.emptied(this);
    return false;
  }

  #sendClaim(claim: PendingClaim): void {
    const { platform, gate, exchanges, waits, limiter } = this.#deps;
    this.#claiming = true;
    this.#hungry = false;
    this.#woken = false;
    this.#unanswered = claim;
    this.#looks.calm();
    this.#setTimer(NEVER);
    const taken = exchanges ? this.#outbox.take() : [];
    // Without exchange the verdicts leave by a request of their own, side by side with the claim.
    if (!exchanges && this.#outbox.waiting > 0 && !this.#settling) this.#sendSettle();
    const waitMs = waits && limiter === undefined && !gate.closed ? WAIT_MS : 0;
    this.#endWait = waitMs > 0 ? new AbortController() : undefined;
    const request: ClaimRequest = {
      leaseId: claim.leaseId,
      max: claim.max,
      waitMs,
      ...(this.#endWait === undefined ? {} : { signal: this.#endWait.signal }),
    };
    let sentAt = 0;
    this.#exchange(taken, request, () => {
      sentAt = platform.now();
    }).then(
      (claimed) => {
        this.#claiming = false;
        this.#endWait = undefined;
        this.#unanswered = undefined;
        this.#failures = 0;
        this.#received(claim, claimed as ClaimReply, sentAt, waitMs);
        this.wake();
      },
      (error: unknown) => {
        this.#claiming = false;
        this.#endWait = undefined;
        claim.resent = true;
        this.#failed(exchanges ? "exchange" : "claim", error);
      },
    );
  }

  #sendSettle(): void {
    this.#settling = true;
    this.#exchange(this.#outbox.take(), undefined, () => {}).then(
      () => {
        this.#settling = false;
        this.#failures = 0;
        this.wake();
      },
      (error: unknown) => {
        this.#settling = false;
        this.#failed("settle", error);
      },
    );
  }

  /**
   * Sends verdicts and a claim, and applies what became of the verdicts. A renewal under way is awaited before its lease is settled, so that the two never race at the
   * broker.
   */
  async #exchange(
    taken: readonly OutgoingVerdict[],
    claim: ClaimRequest | undefined,
    sending: () => void,
  ): Promise<ClaimReply | undefined> {
    const renewals = new Set<Promise<void>>();
    for (const { held } of taken) if (held.lease.renewing !== undefined) renewals.add(held.lease.renewing);
    if (renewals.size > 0) await Promise.all(renewals);
    sending();
    try {
      const reply = await this.#link.send(this.#deps.keeper, this, taken, claim);
      this.#applySettled(taken, reply.settled);
      this.#reports.renewed(reply.renewedIds, reply.renewed);
      return reply.claimed;
    } catch (error) {
      for (const entry of this.#outbox.putBack(taken)) this.#lose(entry.held, true);
      throw error;
    }
  }

  // --- answers ---

  #failed(verb: string, thrown: unknown): void {
    const { platform } = this.#deps;
    const error = asError(thrown);
    if (this.#phase === "closed") return;
    if (error instanceof BrokerRefusedError) return this.#refuse(error);
    this.#failures += 1;
    const retryInMs = brokerBackoffMs(this.#failures, platform.random());
    this.#pausedUntil = platform.now() + retryInMs;
    this.#reports.brokerError(verb, error, retryInMs);
    this.wake();
  }

  #refuse(error: BrokerRefusedError): void {
    this.#phase = "closed";
    this.#setTimer(NEVER);
    this.#looks.calm();
    for (const held of this.#waiting.splice(0)) this.#lose(held, false);
    for (const entry of this.#outbox.take()) this.#lose(entry.held, true);
    this.#reports.refused(error);
    this.#deps.refused(error);
    this.wake();
  }

  #received(claim: PendingClaim, reply: ClaimReply, sentAt: number, waitMs: number): void {
    const { platform, keeper, gate, limiter } = this.#deps;
    const now = platform.now();
    const got = reply.deliveries.length;
    this.#lastGot = got;
    this.#reports.claimed(claim.leaseId, claim.max, got, now - sentAt);
    // A claim sent again that brings nothing says nothing of the queue: its lease may be over.
    const idle = got === 0 && claim.resent;
    if (!idle) this.asking.answered(claim.max, got, claim.slots, waitMs === 0 ? now - sentAt : undefined);
    this.#hungry = got >= claim.max || this.#woken || idle;
    if (got > 0) {
      const lease = new HeldLease(
        claim.leaseId,
        this,
        got,
        sentAt,
        leaseDeadline(sentAt, this.leaseMs),
        this.renews ? renewalDue(sentAt, this.leaseMs) : NEVER,
      );
      this.#held += got;
      limiter?.took(got);
      this.#looks.found();
      keeper.add(lease);
      this.#take(reply, lease, now);
    } else if (gate.owns(this)) {
      gate.done(this);
      this.#hungry = true;
    }
    if (!this.#hungry) this.#planLook(reply, got);
  }

  #planLook(reply: ClaimReply, got: number): void {
    const { limiter, waits } = this.#deps;
    if (limiter !== undefined || this.#phase !== "running") return;
    if (waits) {
      this.#hungry = true;
      return;
    }
    const nextLookMs = this.#looks.missed(reply.nextDueMs);
    if (got === 0) this.#reports.idle(nextLookMs);
  }

  /** Sorts what came: what must not run, what must run alone, and the rest. */
  #take(reply: ClaimReply, lease: HeldLease, now: number): void {
    const { worker, gate } = this.#deps;
    const alone: HeldDelivery[] = [];
    for (const delivery of reply.deliveries) {
      const held: HeldDelivery = { delivery, lease };
      const fate = fateOf(delivery, worker.options.maxAttempts);
      if (fate.kind === "run") this.#waiting.push(held);
      else if (fate.kind === "runAlone") alone.push(held);
      else this.#decide(held, fate.verdict, now, 0);
    }
    if (this.#phase !== "running") {
      this.#releaseWaiting();
      for (const held of alone) this.#outbox.add(held, { kind: "release" }, now);
    } else if (alone.length > 0) {
      this.#takeLastChances(alone, now);
    } else if (gate.owns(this)) {
      gate.done(this);
    }
  }

  /**
   * A last chance runs at once when nothing else is held. Otherwise it goes back, uncharged, and is claimed again by itself once all else is done: were it kept meanwhile, a
   * job running now could take it along.
   */
  #takeLastChances(lastChances: readonly HeldDelivery[], now: number): void {
    const { gate } = this.#deps;
    const first = lastChances[0] as HeldDelivery;
    const alone =
      lastChances.length === 1 && this.quiet() && gate.othersQuiet(this) && (!gate.closed || gate.owns(this));
    gate.want(this);
    this.#hungry = true;
    if (alone) {
      this.#reports.lastChance(first);
      this.#startGroup([first]);
      return;
    }
    for (const held of lastChances) this.#outbox.add(held, { kind: "release" }, now);
  }

  #applySettled(taken: readonly OutgoingVerdict[], results: readonly SettleResult[]): void {
    this.#outbox.answered(taken);
    let soonest = NEVER;
    for (const [index, { held, verdict }] of taken.entries()) {
      // What the broker took counts, even if we had given the lease up meanwhile.
      if (results[index] !== "done") {
        this.#lose(held, true);
        continue;
      }
      this.#reports.settled(held, verdict.kind);
      this.#closeOne(held);
      if (verdict.kind === "retry") soonest = Math.min(soonest, verdict.delayMs);
    }
    if (soonest !== NEVER && this.#phase === "running") this.#looks.expect(soonest);
  }

  #lose(held: HeldDelivery, started: boolean): void {
    this.#reports.lost(held, started);
    this.#closeOne(held);
  }

  #closeOne(held: HeldDelivery): void {
    this.#held -= 1;
    held.lease.open -= 1;
    if (held.lease.open === 0) this.#deps.keeper.drop(held.lease);
  }

  #look(woken: boolean): void {
    if (this.#phase !== "running") return;
    this.#hungry = true;
    if (woken) {
      this.#woken = true;
      this.#reports.woken();
    }
    this.wake();
  }

  /** The loop has one timer: for a pause after an error, a claim-ahead, or verdicts that must leave. */
  #setTimer(at: number): void {
    if (at === this.#timerAt) return;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#timerAt = at;
    if (at === NEVER) return;
    const { platform } = this.#deps;
    this.#cancelTimer = platform.setTimer(Math.max(0, at - platform.now()), () => {
      this.#cancelTimer = undefined;
      this.#timerAt = NEVER;
      this.wake();
    });
  }
}
