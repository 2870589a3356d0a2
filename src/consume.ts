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
import { Appetite } from "./appetite.ts";
import { Asking } from "./asking.ts";
import type { ClaimReply, SettleResult } from "./broker.ts";
import { BrokerLink } from "./broker_link.ts";
import { departureAt } from "./departure.ts";
import { BrokerRefusedError, LeaseLostError, WorkerStoppedError } from "./errors.ts";
import { type HeldDelivery, HeldLease, type LeaseOwner } from "./held.ts";
import { Holdings } from "./holdings.ts";
import { LastChances } from "./last_chances.ts";
import { claimWaitMs, leaseDeadline, leaseMarginMs, renewalDue } from "./lease.ts";
import { LeaseIds } from "./lease_ids.ts";
import { Looks } from "./looks.ts";
import type { QueueLoopDeps } from "./loop_deps.ts";
import { OneTimer } from "./one_timer.ts";
import type { OutgoingVerdict } from "./outbox.ts";
import { Reports } from "./reports.ts";
import { asError } from "./requests.ts";
import { fetchesOf, type Run, Slots } from "./slots.ts";
import type { SoloMember } from "./solo.ts";
import type { QueueStats } from "./stats.ts";
import { type PendingClaim, Traffic } from "./traffic.ts";
import { fateOf } from "./triage.ts";
import { Unclocked } from "./unclocked.ts";
import { isLeftAtEnd, type Outcome, verdictOf } from "./verdict.ts";

const NEVER = Number.POSITIVE_INFINITY;

export class QueueLoop implements SoloMember, LeaseOwner {
  readonly name: string;
  readonly leaseMs: number;
  readonly renews: boolean;
  readonly asking: Asking;
  readonly #deps: QueueLoopDeps;
  readonly #reports: Reports;
  readonly #link: BrokerLink;
  readonly #traffic: Traffic;
  readonly #slots: Slots;
  readonly #looks: Looks;
  readonly #costs: Unclocked;
  #phase: "running" | "stopping" | "closed" = "running";
  /** Whether verdicts wait for each other until {@linkcode QueueLoop.flush}. */
  #gathering = false;
  #flushing = false;
  #isRefused = false;
  #waking = false;
  #again = false;
  readonly #appetite = new Appetite();
  /** How long a claim waits at the engine, in milliseconds. */
  readonly #waitMs: number;
  readonly #leaseIds: LeaseIds;
  readonly #lastChances: LastChances;
  readonly #holdings: Holdings;
  /** For a pause after an error, a claim-ahead, or verdicts that must leave. */
  readonly #timer: OneTimer;

  constructor(deps: QueueLoopDeps) {
    const { platform, queue, worker } = deps;
    this.#deps = deps;
    this.name = queue.name;
    this.leaseMs = queue.limits.leaseMs;
    this.#leaseIds = new LeaseIds(platform.randomId());
    this.renews = worker.options.renew;
    this.asking = new Asking(worker.options, queue.limits, deps.learned);
    this.#costs = new Unclocked(platform, (ms) => this.asking.ran(ms));
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
      started: (jobs) => this.#reports.started(jobs),
      ended: (run, outcomes, left) => this.#ended(run, outcomes, left),
    });
    this.#looks = new Looks({
      platform,
      queue,
      watches: deps.watches,
      requestTimeoutMs: worker.options.settings.requestTimeoutMs,
      brokerName: deps.brokerName,
      pollMinMs: worker.options.pollMinMs,
      pollMaxMs: worker.options.pollMaxMs,
      safetyPollMs: worker.options.safetyPollMs,
      look: (woken) => this.#look(woken),
      watchFailed: (error, retryInMs) => this.#reports.brokerError("watch", error, retryInMs),
    });
    this.#lastChances = new LastChances(deps.gate, this);
    this.#holdings = new Holdings({
      keeper: deps.keeper,
      reports: this.#reports,
      lastChances: this.#lastChances,
      released: (count) => deps.limiter?.took(-count),
    });
    this.#traffic = new Traffic({
      platform,
      link: this.#link,
      keeper: deps.keeper,
      owner: this,
      outbox: this.#holdings.outbox,
      memo: () => deps.limiter?.memo(this),
      events: {
        received: (claim, reply, sentAt) => this.#received(claim, reply, sentAt),
        settled: (taken, results) => this.#settled(taken, results),
        roundTrip: (ms) => this.asking.tookRoundTrip(ms),
        renewed: (leaseIds, results) => this.#reports.renewed(leaseIds, results),
        lost: (entry) => this.#holdings.lose(entry.held),
        failed: (verb, error, retryInMs) => this.#reports.brokerError(verb, error, retryInMs),
        refused: (error) => this.#refuse(error),
        wake: this.wake,
      },
    });
    this.#timer = new OneTimer(platform, this.wake);
    this.#waitMs = deps.waits && deps.limiter === undefined ? claimWaitMs(this.leaseMs, this.renews) : 0;
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
    this.#traffic.stopping();
    this.#looks.calm();
    this.#releaseWaiting();
    // Bodies still being checked belong to jobs whose handlers were not called yet.
    this.#slots.interruptUnstarted();
    this.wake();
  }

  /**
   * A run's handlers are about to be interrupted: what that brings leaves together, by the flush at the latest, for the end of its time has room for few round trips. Where nothing
   * renews leases meanwhile, and in a worker, which has time, it leaves as ever.
   */
  gather(): void {
    this.#gathering = this.renews && this.#deps.limiter !== undefined;
  }

  /** What verdicts there are leave now: no other is waited for. */
  flush(): void {
    this.#flushing = true;
    this.wake();
  }

  /** Aborts the handlers that still run. */
  abortRunning(reason: Error): void {
    this.#slots.abortAll(reason);
  }

  /** Gives up the handlers that ignored it; each of their jobs has used up an attempt. */
  leaveRunning(): void {
    // Their verdicts leave together: the end of a run's time has room for one round trip, not for two.
    this.#waking = true;
    this.#slots.leaveAll();
    this.#waking = false;
    this.wake();
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
    return this.#holdings.waiting;
  }

  /** Deliveries claimed and not settled. */
  get held(): number {
    return this.#holdings.count;
  }

  /** Deliveries claimed whose handlers are not done. */
  get unfinished(): number {
    return this.#holdings.unfinished;
  }

  /** How many a claim under way may bring. */
  get asked(): number {
    return this.#traffic.unanswered?.max ?? 0;
  }

  /** Whether a stop has nothing left to do here: every verdict was taken, and no request is under way. */
  get settled(): boolean {
    if (this.#phase === "closed") return true;
    const abandons = this.#traffic.unanswered !== undefined && this.#link.abandons;
    return this.#holdings.nothingWaits && !this.#traffic.busy && !abandons;
  }

  /** Whether nothing is in hand: no job running, waiting or unsettled, no request under way. */
  get idle(): boolean {
    return this.#phase === "closed" || (this.#onlyKept && this.#lastChances.kept === undefined);
  }

  /** Whether nothing is in hand but, perhaps, the last chance that was kept. */
  get #onlyKept(): boolean {
    return this.emptyHanded() && !this.#traffic.busy;
  }

  emptyHanded(): boolean {
    return this.#holdings.nothingWaits && this.#slots.busy === 0;
  }

  /** Whether nothing is held, not even by a claim whose answer never came. */
  quiet(): boolean {
    return this.#phase === "closed"
      ? this.#slots.busy === 0
      : this.idle && this.#traffic.unanswered === undefined;
  }

  /** Ends the loop. A claim whose answer never came is given back by its lease's id. Never rejects. */
  async close(): Promise<void> {
    const { platform, gate, keeper, limiter } = this.#deps;
    const givesBack =
      this.#phase !== "closed" && this.#traffic.unanswered !== undefined && limiter?.maySettle() !== false;
    this.#phase = "closed";
    const given = this.#traffic.close(givesBack);
    this.#timer.stop();
    gate.leave(this);
    // What could not be settled comes back by itself.
    if (this.#holdings.count > 0) limiter?.delayed(this, keeper.endsAt(this) - platform.now());
    this.#holdings.close();
    try {
      await this.#looks.close();
    } catch (error) {
      this.#reports.brokerError("watch", asError(error), undefined);
    }
    await given;
    this.#link.close();
  }

  stats(): QueueStats {
    return {
      queue: this.name,
      ...this.#reports.counters,
      running: this.#slots.busy,
      held: this.#holdings.count,
      ...this.asking.stats(),
    };
  }

  /** Decides what to do now. Called after every event; a call from within is made up for at the end of the present one. */
  readonly wake = (): void => this.#wake(this.#deps.platform.now());

  /** Reading the clock costs as much as a short job: whoever has just read it says what it said. */
  #wake(at: number): void {
    if (this.#waking) {
      this.#again = true;
      return;
    }
    this.#waking = true;
    let now = at;
    try {
      do {
        if (this.#again) now = this.#deps.platform.now();
        this.#again = false;
        if (this.#phase !== "closed") {
          now = this.#startWaiting(now);
          this.#send(now);
        } else if (this.#isRefused) {
          this.#holdings.loseUnsent();
        }
      } while (this.#again);
    } finally {
      // Should anything ever throw in here, the loop must not stand still for it.
      this.#waking = false;
    }
    if (this.#deps.gate.closed) this.#deps.gate.changed(this);
    this.#deps.limiter?.changed();
    this.#deps.changed();
  }

  // --- LeaseOwner: what the keeper asks and tells ---

  renew(leaseIds: readonly string[]): Promise<readonly ("held" | "lost")[]> {
    const { limiter } = this.#deps;
    if (limiter !== undefined && !limiter.mayRenew()) {
      const why = "the run's budget of requests is used up";
      this.abortRunning(new WorkerStoppedError(why));
      return Promise.reject(new Error(why));
    }
    return this.#link.renew(leaseIds).then(
      (results) => {
        this.#reports.renewed(leaseIds, results);
        return results;
      },
      (error: unknown) => {
        if (error instanceof BrokerRefusedError) this.#refuse(error);
        else this.#reports.brokerError("renew", asError(error), undefined);
        throw error;
      },
    );
  }

  lost(lease: HeldLease, why: string): void {
    this.#slots.abortLease(lease, (jobId) => new LeaseLostError(jobId, why));
    for (const job of this.#slots.jobs()) if (job.held.lease === lease) this.#holdings.lose(job.held);
    this.#holdings.loseLease(lease);
    this.#appetite.rouse();
    this.wake();
  }

  // --- running ---

  /** Answers what the clock says when that is done. */
  #startWaiting(at: number): number {
    const { platform, worker, limiter, keeper, gate } = this.#deps;
    const { concurrency, batchSize } = worker.options;
    let now = at;
    if (this.#lastChances.kept !== undefined) {
      this.#startKept(this.#lastChances.kept);
      now = platform.now();
    }
    // A job that kills the worker would use up a last chance that is still in hand. Another queue's may be kept until nothing is in hand here.
    if (gate.blockedFor(this)) this.#releaseWaiting();
    if (gate.blocked) return now;
    const holdings = this.#holdings;
    while (holdings.waiting > 0 && this.#slots.busy < concurrency && this.#phase === "running") {
      const group = holdings.next(batchSize);
      // A computing handler may have kept the lease's timer from firing; losing it takes its jobs out of what waits.
      if (group.some(({ lease }) => keeper.expired(lease, now))) continue;
      if (limiter !== undefined && !limiter.mayStart(this)) {
        this.#releaseWaiting();
        break;
      }
      holdings.started(group.length);
      this.#slots.start(group, now);
      now = platform.now();
    }
    return now;
  }

  #ended(run: Run, outcomes: readonly Outcome[], left: boolean): void {
    const { platform, worker, keeper, limiter } = this.#deps;
    const now = platform.now();
    const ranMs = (now - run.startedAt) / run.jobs.length;
    for (let index = 0; index < run.jobs.length; index++) {
      const job = run.jobs[index] as Run["jobs"][number];
      // How long the run's end took to come says nothing of how long a job takes.
      if (!isLeftAtEnd(outcomes[index])) this.#costs.ended(now, ranMs);
      if (left) this.#reports.abandoned(job.id);
      const { lease } = job.held;
      if (this.#phase === "closed" || keeper.expired(lease, now)) {
        // Lost while it ran, or just now noticed; or refused, so that no verdict is sent any more.
        this.#holdings.lose(job.held);
        continue;
      }
      const outcome = outcomes[index] as Outcome;
      const verdict = verdictOf(outcome, {
        attempt: job.attempt,
        maxAttempts: job.maxAttempts,
        retryDelayMs: worker.options.retryDelayMs,
        random: () => platform.random(),
        leaseLeftMs: Math.ceil(lease.deadline - now),
      });
      this.#holdings.decide(job.held, verdict, now, ranMs, outcome);
    }
    limiter?.ran(this, now - run.startedAt, fetchesOf(run), run.jobs.length);
    this.#wake(now);
  }

  #releaseWaiting(): void {
    this.#holdings.releaseWaiting(this.#deps.platform.now());
  }

  // --- sending ---

  /** Sends what there is to send, or sets the one timer to the moment when there will be. */
  #send(now: number): void {
    const { gate, turns } = this.#deps;
    const traffic = this.#traffic;
    // Whoever waits to be alone waits for our claim too.
    if (gate.closed && !gate.owns(this)) traffic.endWait();
    if (now < traffic.pausedUntil) return this.#timer.set(traffic.pausedUntil);
    // How much to ask for, and what may still be afforded, depends on what the last jobs cost.
    if (this.#phase === "running" && !traffic.claiming && !this.#costs.known(this.wake)) return;
    let next = NEVER;
    if (this.#phase === "running" && !traffic.claiming && turns.mayClaim(now, this.wake)) {
      const claim = this.#claimNow(now);
      if (typeof claim === "number") next = claim;
      else this.#sendClaim(claim, now);
    } else if (this.#phase === "stopping" && !traffic.busy) {
      this.#sendAbandon();
    }
    if (this.#holdings.outbox.waiting > 0 && !traffic.settling) {
      const settleAt = this.#settleAt();
      if (settleAt <= now) this.#sendSettle(now);
      else next = Math.min(next, settleAt);
    }
    this.#timer.set(next);
  }

  /** When the waiting verdicts are to leave alone. */
  #settleAt(): number {
    const { limiter, exchanges, worker } = this.#deps;
    const { outbox, waiting } = this.#holdings;
    return departureAt({
      isRunning: this.#phase === "running",
      isBusy: this.#slots.busy > 0 || waiting > 0,
      isClaiming: this.#traffic.claiming,
      isTogether: this.#gathering || limiter?.saving() === true,
      isFlushing: this.#flushing,
      holdsLastChances: this.#lastChances.inHand,
      exchanges,
      wasLastFull: this.asking.lastFull,
      oldestSince: outbox.oldestSince,
      soonAt: outbox.soonAt,
      settleWithinMs: worker.options.settleWithinMs,
    });
  }

  /** The claim to send now, or the time at which to think of it again. */
  #claimNow(now: number): PendingClaim | number {
    const { gate, worker, limiter, exchanges } = this.#deps;
    const { unanswered } = this.#traffic;
    if (unanswered !== undefined) {
      return limiter === undefined || limiter.mayClaimAgain(this) ? unanswered : NEVER;
    }
    if (gate.closed && !this.#mayClaimAlone()) return NEVER;
    let slots = worker.options.concurrency - this.#slots.busy;
    let waitMs = this.#waitMs;
    let wanted: number;
    // Verdicts that leave with the claim, or right before it, make room at the engine.
    const { outbox, waiting } = this.#holdings;
    const held = this.#holdings.count - outbox.waiting;
    if (gate.closed) {
      slots = 1;
      wanted = 1;
      waitMs = 0;
    } else if (slots === 0 || waiting > 0) {
      if (limiter !== undefined) return NEVER;
      const inMs = this.asking.aheadInMs(waiting, this.#slots.busy, this.#slots.runningForMs(now));
      if (inMs === undefined) return NEVER;
      if (inMs > 0) return now + inMs;
      slots = worker.options.concurrency;
      wanted = this.asking.wanted(slots, held);
    } else {
      if (!this.#appetite.isHungry && !this.#worthALook(exchanges, now)) return NEVER;
      wanted = this.asking.wanted(slots, held);
    }
    const max = limiter === undefined ? wanted : limiter.room(this, wanted);
    if (max >= 1) return { leaseId: this.#leaseIds.next(), max, slots, waitMs, resent: false };
    // Who may not claim any more needs the worker no longer.
    if (gate.closed) this.#giveBackGate();
    return NEVER;
  }

  /** Whether this loop has the worker to itself: one job is claimed then, when nothing at all is held. Our own verdicts have left by then. */
  #mayClaimAlone(): boolean {
    const { gate } = this.#deps;
    if (!gate.owns(this) || !this.quiet() || !gate.othersQuiet(this)) return false;
    if (!this.#lastChances.wanted) gate.done(this);
    // Given back, unless another queue of the worker waits for it too.
    return !gate.closed || gate.owns(this);
  }

  /** Whether to look although nothing is expected. */
  #worthALook(exchanges: boolean, now: number): boolean {
    const { limiter } = this.#deps;
    // With verdicts to bring, a look costs nothing.
    if (exchanges && this.#holdings.outbox.waiting > 0 && this.#settleAt() <= now) return true;
    if (limiter === undefined || !this.quiet()) return false;
    // A run that must end: after a short claim has been worked off, one more look says whether the queue is empty.
    if (this.#appetite.lastGot > 0) return true;
    limiter.emptied(this);
    return false;
  }

  #sendClaim(claim: PendingClaim, now: number): void {
    this.#appetite.claims();
    this.#looks.calm();
    // Without exchange the verdicts leave by a request of their own, just before the claim.
    const waits = this.#holdings.outbox.waiting > 0 && !this.#traffic.settling;
    if (!this.#deps.exchanges && waits) this.#sendSettle(now);
    this.#deps.turns.claimed();
    this.#traffic.claim(claim, now);
  }

  #sendSettle(now: number): void {
    if (this.#deps.limiter?.maySettle() !== false) return this.#traffic.settle(now);
    // Without a request to send them by, they are lost as with a crash.
    this.#holdings.loseUnsent();
  }

  #sendAbandon(): void {
    if (this.#traffic.unanswered === undefined || !this.#link.abandons) return;
    if (this.#deps.limiter?.maySettle() !== false) this.#traffic.abandon();
    else this.#traffic.forgetUnanswered();
  }

  // --- answers ---

  #refuse(error: BrokerRefusedError): void {
    if (this.#phase === "closed") return;
    this.#phase = "closed";
    this.#timer.stop();
    this.#looks.calm();
    this.#isRefused = true;
    // A claim that is held back by a renewal must not be sent any more.
    this.#traffic.stopping();
    this.#holdings.loseWaiting();
    this.#reports.refused(error);
    this.#deps.refused(error);
    this.wake();
  }

  #received(claim: PendingClaim, reply: ClaimReply, sentAt: number): void {
    if (this.#phase === "closed") return;
    const { platform, gate, limiter } = this.#deps;
    const now = platform.now();
    const got = reply.deliveries.length;
    this.#reports.claimed(claim.leaseId, claim.max, got, now - sentAt);
    if (this.#appetite.answered(claim.max, got, claim.resent)) {
      this.asking.answered(claim.max, got, claim.slots, claim.waitMs === 0 ? now - sentAt : undefined);
    }
    if (got > 0) {
      const lease = new HeldLease(
        claim.leaseId,
        this,
        got,
        sentAt,
        leaseDeadline(sentAt, this.leaseMs),
        this.renews ? renewalDue(sentAt, this.leaseMs) : NEVER,
      );
      this.#holdings.took(lease);
      limiter?.took(got);
      this.#looks.found();
      this.#take(reply, lease, now);
    } else if (gate.owns(this)) {
      this.#giveBackGate();
    }
    if (!this.#appetite.isHungry) this.#planLook(reply, got);
  }

  #planLook(reply: ClaimReply, got: number): void {
    const { limiter, waits, keeper } = this.#deps;
    limiter?.missed(this, reply.nextDueMs, keeper.endsAt(this) - leaseMarginMs(this.leaseMs));
    if (limiter !== undefined || this.#phase !== "running") return;
    if (waits) {
      this.#appetite.rouse();
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
      const held: HeldDelivery = { delivery, lease, started: false, over: false };
      const fate = fateOf(delivery, worker.options.maxAttempts);
      if (fate.kind === "run") this.#holdings.queue(held);
      else if (fate.kind === "runAlone") alone.push(held);
      else this.#holdings.decide(held, fate.verdict, now, 0);
    }
    if (this.#phase !== "running") {
      this.#releaseWaiting();
      this.#holdings.release(alone, now);
    } else if (alone.length > 0) {
      this.#takeLastChances(alone, now);
    } else if (gate.owns(this)) {
      if (this.#lastChances.otherCame()) this.#giveBackGate();
    }
  }

  /**
   * A last chance runs at once when nothing else is held. Of several that came alone, one is kept until the others have been given back. Otherwise they go back, uncharged, and are
   * claimed again by themselves once all else is done: were one kept meanwhile, a job running could take it along.
   */
  #takeLastChances(lastChances: readonly HeldDelivery[], now: number): void {
    const { gate } = this.#deps;
    const [first, ...others] = lastChances as [HeldDelivery, ...HeldDelivery[]];
    const nothingElse = this.emptyHanded() && gate.othersEmptyHanded(this);
    const keeps = nothingElse && (!gate.closed || gate.owns(this));
    const back = keeps ? others : lastChances;
    this.#appetite.rouse();
    // First out of our hands: another queue's may start as soon as ours are empty, or are thought to be.
    this.#holdings.release(back, now);
    if (keeps) this.#lastChances.keep(first);
    this.#lastChances.giveBack(back);
    if (keeps) this.#startKept(first);
  }

  /** Starts the last chance that was kept, once nothing else is held. */
  #startKept(held: HeldDelivery): void {
    const { platform, gate, keeper, limiter } = this.#deps;
    if (this.#lastChances.kept !== held) return;
    if (!this.#onlyKept || !gate.owns(this) || !gate.othersQuiet(this)) return;
    if (keeper.expired(held.lease, platform.now())) return;
    if (limiter !== undefined && !limiter.mayStart(this)) return this.#releaseWaiting();
    this.#lastChances.starts(held);
    this.#reports.lastChance(held);
    this.#slots.start([held], platform.now());
    this.#lastChances.over(held);
  }

  #giveBackGate(): void {
    this.#lastChances.forget();
    this.#appetite.rouse();
    this.#deps.gate.done(this);
  }

  #settled(taken: readonly OutgoingVerdict[], results: readonly SettleResult[]): void {
    const soonestMs = this.#holdings.answered(taken, results);
    if (soonestMs === NEVER) return;
    this.#deps.limiter?.delayed(this, soonestMs);
    if (this.#phase === "running") this.#looks.expect(soonestMs);
  }

  #look(woken: boolean): void {
    if (this.#phase !== "running") return;
    this.#appetite.wake();
    if (woken) this.#reports.woken();
    this.wake();
  }
}
