/**
 * One drain's budget at work: says what each queue may still claim, start and send, counts, and reports.
 *
 * @module
 */
import type { Broker, BrokerQueue, QueueSizes } from "./broker.ts";
import {
  type BudgetEnd,
  type BudgetLimits,
  type BudgetReserve,
  leastRequests,
  requestTime,
  reserveFor,
  roomFor,
  type Spending,
  startRefused,
} from "./budget.ts";
import type { Crew } from "./crew.ts";
import { type DrainReport, LEFT_UNKNOWN, leftOf, onlyPaused } from "./drain_report.ts";
import { WorkerStoppedError } from "./errors.ts";
import { fromMemo, type Learned, toMemo } from "./learned.ts";
import { NextDue } from "./next_due.ts";
import type { Platform } from "./platform.ts";
import { withDeadline } from "./requests.ts";
import type { LimitedLoop, RunLimiter } from "./run_limiter.ts";
import { hundredths } from "./stats.ts";
import type { WorkerQueue } from "./worker.ts";

/** How much the newest job weighs in the average of requests a job. */
const REQUESTS_WEIGHT = 0.3;

/** Of the queues that wait for room, so many are told at once that there may be some. */
const MOST_TOLD = 8;

export class BoundedRun implements RunLimiter {
  readonly #platform: Platform;
  readonly #broker: Broker;
  readonly #limits: BudgetLimits;
  readonly #startedAt: number;
  readonly #requestsBefore: number;
  readonly #emptied = new Set<LimitedLoop>();
  readonly #spent = new Set<LimitedLoop>();
  /** Queues that have to wait for what others have in hand; who has waited longest first. */
  readonly #blocked = new Set<LimitedLoop>();
  /** How much that was when there last was no room. */
  #blockedAt = 0;
  readonly #nextDue = new Map<LimitedLoop, NextDue>();
  readonly #learned = new Map<LimitedLoop, Learned>();
  /** By this run's own jobs. */
  readonly #requestsPerJob = new Map<LimitedLoop, number>();
  #noRoomFor: DrainReport["noRoomFor"];
  crew!: Crew;
  end: BudgetEnd | undefined;
  #openedInMs = 0;
  #reserve: BudgetReserve;
  /** What a request is to be planned with, in milliseconds. */
  #requestMs: number;
  /** What one request to the broker costs of the budget. */
  #requestCosts: 0 | 1 = 1;
  #jobs = 0;
  #fetches = 0;

  constructor(platform: Platform, broker: Broker, limits: BudgetLimits, startedAt: number, queues: number) {
    this.#platform = platform;
    this.#broker = broker;
    this.#limits = limits;
    this.#startedAt = startedAt;
    this.#requestsBefore = broker.requests;
    this.#requestMs = requestTime(undefined, 0, true);
    this.#reserve = reserveFor(limits, queues, true, this.#requestMs);
  }

  /**
   * The queues are open. An engine that needed no request for it needs none at all; how long it took tells what a request takes.
   *
   * @throws {RangeError} when the budget has no room for a single job.
   */
  begin(crew: Crew): void {
    this.crew = crew;
    this.#requestCosts = this.#broker.requests > 0 ? 1 : 0;
    this.#openedInMs = this.#platform.now() - this.#startedAt;
    const queues = crew.loops.length;
    this.#keepBack(requestTime(undefined, this.#openedInMs, this.#requestCosts > 0));
    const least = leastRequests(this.requests, queues, this.reserve, this.#requestCosts);
    if (this.#limits.maxRequests < least) {
      throw new RangeError(
        `Cannot drain: maxRequests is ${this.#limits.maxRequests}; give ${least} or more, the least with which ${queues === 1 ? "a queue" : `${queues} queues`} can be opened and looked at, and a job run and settled`,
      );
    }
    for (const [index, loop] of crew.loops.entries()) {
      const learned = fromMemo(crew.queues[index]?.memo);
      if (learned !== undefined) this.#learned.set(loop, learned);
    }
  }

  /** What is kept back to settle: time by what the last requests took. */
  get reserve(): BudgetReserve {
    let slowestMs: number | undefined;
    for (const { asking } of this.crew.loops) {
      const ms = asking.slowestTripMs;
      if (ms !== undefined && (slowestMs === undefined || ms > slowestMs)) slowestMs = ms;
    }
    const requestMs = requestTime(slowestMs, this.#openedInMs, this.#requestCosts > 0);
    if (requestMs !== this.#requestMs) this.#keepBack(requestMs);
    return this.#reserve;
  }

  #keepBack(requestMs: number): void {
    this.#requestMs = requestMs;
    this.#reserve = reserveFor(this.#limits, this.crew.loops.length, this.#requestCosts > 0, requestMs);
  }

  /** How long handlers may work, in milliseconds from the run's start. */
  get workMs(): number {
    return this.#limits.maxMs - this.reserve.ms;
  }

  leftMs(): number {
    return Math.max(0, this.workMs - (this.#platform.now() - this.#startedAt));
  }

  get requests(): number {
    return this.#broker.requests - this.#requestsBefore + this.#fetches;
  }

  /** Whether each queue is empty or beyond the budget, and nothing is held that could still be settled. */
  over(): boolean {
    return this.crew.loops.every((loop) =>
      this.#spent.has(loop) ? loop.idle : this.#emptied.has(loop) && loop.quiet(),
    );
  }

  room(loop: LimitedLoop, wanted: number): number {
    if (this.#emptied.has(loop) || this.#spent.has(loop)) return 0;
    const { jobs, end } = roomFor(
      wanted,
      this.#limits,
      this.reserve,
      this.#spending(loop),
      this.#claimCosts(loop),
    );
    if (jobs >= 1) return jobs;
    if (this.crew.quiet) {
      this.#spend(loop, end);
    } else {
      this.#blocked.add(loop);
      this.#blockedAt = this.#held();
    }
    return 0;
  }

  mayStart(loop: LimitedLoop): boolean {
    const end = startRefused(this.#limits, this.reserve, this.#spending(loop));
    if (end === undefined) return true;
    // Were it to claim again, it would take and give back the same jobs over and over.
    this.#spend(loop, end);
    return false;
  }

  mayClaimAgain(loop: LimitedLoop): boolean {
    if (this.#affords(this.#claimCosts(loop) + this.reserve.requests)) return true;
    this.#spend(loop, "requests");
    return false;
  }

  maySettle(): boolean {
    if (this.#affords(this.#requestCosts)) return true;
    this.end ??= "requests";
    return false;
  }

  mayRenew(): boolean {
    return !this.saving();
  }

  saving(): boolean {
    return !this.#affords(this.#requestCosts + this.reserve.requests);
  }

  took(count: number): void {
    this.#jobs += count;
  }

  ran(loop: LimitedLoop, _ms: number, requests: number, jobs: number): void {
    const each = requests / jobs;
    const known = this.#requestsPerJob.get(loop);
    this.#requestsPerJob.set(
      loop,
      known === undefined ? each : Math.max(each, known + REQUESTS_WEIGHT * (each - known)),
    );
  }

  memo(loop: LimitedLoop): string | undefined {
    if (!this.#broker.capabilities.has("memo")) return undefined;
    const { averageMs, prefetch } = loop.asking;
    const requestsPerJob = this.#requestsPerJob.get(loop) ?? this.#learned.get(loop)?.requestsPerJob;
    return averageMs === undefined || requestsPerJob === undefined
      ? undefined
      : toMemo({ averageMs, prefetch, requestsPerJob });
  }

  changed(): void {
    if (this.#blocked.size === 0) return;
    const { quiet } = this.crew;
    if (!quiet && this.#held() === this.#blockedAt) return;
    // Once nothing is in hand all are told, so that each ends. Before that a few at a time: were many told of each job that ends, and in vain, the run would do nothing else.
    let left = quiet ? this.#blocked.size : MOST_TOLD;
    for (const loop of this.#blocked) {
      if (left === 0) break;
      left -= 1;
      this.#blocked.delete(loop);
      queueMicrotask(loop.wake);
    }
  }

  missed(loop: LimitedLoop, nextDueMs: number | undefined, ownEndsAt: number): void {
    this.#nextDueOf(loop).told(this.#platform.now(), nextDueMs, ownEndsAt);
  }

  delayed(loop: LimitedLoop, delayMs: number): void {
    this.#nextDueOf(loop).sentBack(this.#platform.now() + delayMs);
  }

  #nextDueOf(loop: LimitedLoop): NextDue {
    const known = this.#nextDue.get(loop) ?? new NextDue();
    this.#nextDue.set(loop, known);
    return known;
  }

  emptied(loop: LimitedLoop): void {
    this.#emptied.add(loop);
  }

  beforeFetch(): void {
    if (!this.#affords(1 + this.reserve.requests)) {
      const why = "the run's budget of requests is used up";
      for (const loop of this.crew.loops) loop.abortRunning(new WorkerStoppedError(why));
      throw new WorkerStoppedError(why);
    }
    this.#fetches += 1;
  }

  /** Tells how the run went, and what is left, if there is budget to ask. */
  async report(queues: readonly WorkerQueue[], signalled: boolean): Promise<DrainReport> {
    const sum = { jobs: 0, acked: 0, retried: 0, dead: 0, released: 0, lost: 0, abandoned: 0 };
    for (const one of this.crew.stats()) {
      sum.jobs += one.started;
      sum.acked += one.acked;
      sum.retried += one.retried;
      sum.dead += one.dead;
      sum.released += one.released;
      sum.lost += one.lost;
      sum.abandoned += one.abandoned;
    }
    const sizes = await this.#sizes(queues);
    const emptied = sizes !== undefined && onlyPaused(sizes) ? "paused" : "empty";
    const now = this.#platform.now();
    const nextDueMs = this.crew.loops.map((loop, index) =>
      this.#nextDue.get(loop)?.inMs(now, sizes?.[index]),
    );
    const firstMs = Math.min(...nextDueMs.filter((ms) => ms !== undefined));
    return {
      ...sum,
      requests: this.requests,
      ms: Math.floor(now - this.#startedAt),
      stopped: this.end ?? (signalled ? "signal" : emptied),
      ...(this.#noRoomFor === undefined ? {} : { noRoomFor: this.#noRoomFor }),
      ...(sizes === undefined ? LEFT_UNKNOWN : leftOf(sizes)),
      nextDueMs: firstMs === Number.POSITIVE_INFINITY ? null : Math.ceil(firstMs),
    };
  }

  /** Asks what is left in each queue; `undefined` when that cannot be known. */
  async #sizes(queues: readonly WorkerQueue[]): Promise<QueueSizes[] | undefined> {
    if (!this.#broker.capabilities.has("sizes")) return undefined;
    // Two a queue: the engine may have forgotten its script.
    if (!this.#affords(2 * queues.length * this.#requestCosts)) return undefined;
    try {
      const found: QueueSizes[] = [];
      // The run's own queues: others of the same names would have to be opened first, which may cost requests.
      for (const [index, { options }] of queues.entries()) {
        const queue = this.crew.queues[index] as BrokerQueue;
        const leftMs = this.#startedAt + this.#limits.maxMs - this.#platform.now();
        if (leftMs <= 0 || queue.sizes === undefined) return undefined;
        found.push(
          await withDeadline(
            this.#platform,
            Math.min(options.settings.requestTimeoutMs, leftMs),
            this.#broker.name,
            "sizes",
            queue.sizes(),
          ),
        );
      }
      return found;
    } catch {
      // The work is done and settled; not knowing what is left is no reason to call the run failed.
      return undefined;
    }
  }

  /** The queue gets no more of the run. */
  #spend(loop: LimitedLoop, end: BudgetEnd | undefined): void {
    this.#spent.add(loop);
    if (this.end !== undefined) return;
    this.end = end;
    const jobMs = loop.asking.ownAverageMs;
    const leftMs = this.leftMs();
    if (end === "time" && leftMs > 0 && jobMs !== undefined && jobMs > leftMs)
      this.#noRoomFor = { jobMs: hundredths(jobMs), leftMs: hundredths(leftMs) };
  }

  #affords(requests: number): boolean {
    return this.requests + requests <= this.#limits.maxRequests;
  }

  /** What a claim may cost: as long as none was answered, twice as much, for the engine may not know its script yet. */
  #claimCosts(loop: LimitedLoop): number {
    return loop.asking.roundTripMs === undefined ? 2 * this.#requestCosts : this.#requestCosts;
  }

  #held(): number {
    let held = 0;
    for (const loop of this.crew.loops) held += loop.unfinished;
    return held + this.#asked();
  }

  /** What the claims under way may bring: another queue's must not spend it, too. */
  #asked(): number {
    let asked = 0;
    for (const loop of this.crew.loops) asked += loop.asked;
    return asked;
  }

  #spending(loop: LimitedLoop): Spending {
    return {
      elapsedMs: this.#platform.now() - this.#startedAt,
      requests: this.requests,
      jobs: this.#jobs + this.#asked(),
      held: this.#held(),
      heldOfQueue: loop.unfinished + loop.asked,
      slots: loop.slots,
      averageMs: loop.asking.ownAverageMs,
      roundTripMs: loop.asking.roundTripMs ?? this.#requestMs,
      requestsPerJob: this.#requestsPerJob.get(loop),
      learned: this.#learned.get(loop),
    };
  }
}
