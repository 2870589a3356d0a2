/**
 * A drain: a bounded run of the consume loop. Takes jobs until the queues are empty or the budget is used up, settles all, gives back what was not started, reports, stops.
 *
 * @module
 */

import type { Broker, BrokerQueue } from "./broker.ts";
import {
  type BudgetEnd,
  type BudgetLimits,
  type BudgetReserve,
  reserveFor,
  roomFor,
  type Spending,
  startRefused,
} from "./budget.ts";
import type { QueueLoop } from "./consume.ts";
import { Crew } from "./crew.ts";
import { WorkerStoppedError } from "./errors.ts";
import { type EddyEvent, type EventListener, Events } from "./events.ts";
import type { LogSink } from "./job.ts";
import { fromMemo, toMemo } from "./learned.ts";
import type { Platform } from "./platform.ts";
import { withDeadline } from "./requests.ts";
import type { RunLimiter } from "./run_limiter.ts";
import type { WorkerDefinition, WorkerQueue } from "./worker.ts";

/** What a drain may spend. Each by default what the platform's invocation allows. */
export interface BudgetOptions {
  /** Wall time in milliseconds. */
  readonly maxMs?: number | undefined;
  /** Requests, the broker's and the handlers' `job.fetch` together. */
  readonly maxRequests?: number | undefined;
  readonly maxJobs?: number | undefined;
}

export interface DrainDeps {
  readonly broker: Broker;
  readonly platform: Platform;
  readonly log?: LogSink | undefined;
  readonly on?: EventListener | undefined;
  /** The names of the queues to drain. By default all of the definition. */
  readonly queues?: readonly string[] | undefined;
  /** Ends the run early, gracefully. */
  readonly signal?: AbortSignal | undefined;
  readonly budget?: BudgetOptions | undefined;
}

export interface DrainReport {
  /** Jobs whose handler was started. */
  readonly jobs: number;
  readonly acked: number;
  readonly retried: number;
  readonly dead: number;
  /** Given back unstarted, or interrupted by the end of the run. */
  readonly released: number;
  /** Deliveries whose lease was over before they were settled, or whose verdict the broker never confirmed; unless it took it all the same, they run again. */
  readonly lost: number;
  /** Of all these: jobs whose handler ignored its signal and was left behind, which costs an attempt. */
  readonly abandoned: number;
  /** Requests made, the broker's and the handlers'. */
  readonly requests: number;
  /** How long it took, in milliseconds. */
  readonly ms: number;
  readonly stopped: "empty" | BudgetEnd | "signal";
  /** Jobs left in the queues: ready, delayed, and held by others. `null` where the broker cannot tell or the budget had no room to ask. */
  readonly left: number | null;
}

/** A drain gives up on a broker after so many failures in a row. */
const MOST_FAILURES = 6;

/** How much the newest job weighs in the average of requests a job. */
const REQUESTS_WEIGHT = 0.3;

/**
 * Drains queues within a budget.
 *
 * @example
 * ```ts
 * const report = await drain(worker, { broker, platform, budget: { maxMs: 20_000 } });
 * ```
 *
 * @throws {RangeError} when a budget's field is no whole number from 1 on, or a queue is unknown.
 * @throws {BrokerRefusedError | BrokerError} when the broker cannot be used, or fails again and again.
 */
export async function drain(definition: WorkerDefinition, deps: DrainDeps): Promise<DrainReport> {
  const { broker, platform, signal } = deps;
  const queues = chosenQueues(definition, deps.queues);
  const limits = resolveBudget(deps.budget ?? {}, platform);
  const startedAt = platform.now();
  const events = new Events();
  if (deps.on !== undefined) events.on(deps.on);
  const run = new BoundedRun(platform, broker, limits, startedAt, queues.length);
  let broken: Error | undefined;
  let failures = 0;
  events.on((event) => {
    failures = nextFailures(event, failures);
    if (failures >= MOST_FAILURES && event.type === "brokerError") broken ??= event.error;
  });
  const crew = await Crew.open({
    broker,
    platform,
    events,
    log: definition.log ?? deps.log,
    queues,
    limiter: run,
    openWithinMs: limits.maxMs,
    endsAt: platform.wallNow() + run.workMs,
    beforeFetch: () => run.beforeFetch(),
    refused: (error) => {
      broken ??= error;
    },
  });
  run.begin(crew);
  const onAbort = () => crew.changes.notify();
  signal?.addEventListener("abort", onAbort);
  try {
    if (signal?.aborted !== true) await crew.start();
    const finished = await crew.changes.until(
      platform,
      run.leftMs(),
      () => broken !== undefined || signal?.aborted === true || run.over(),
    );
    if (!finished) run.end ??= "time";
    await crew.end(`the drain is over: ${finished ? "stopped" : "its time is used up"}`, {
      graceMs: signal?.aborted ? Math.min(definition.graceMs, run.leftMs()) : 0,
      abortWaitMs: Math.min(
        definition.abortWaitMs,
        run.reserve.ms === 0 ? Number.POSITIVE_INFINITY : run.reserve.ms / 2,
      ),
      settleWaitMs: definition.settleWaitMs,
      by: startedAt + limits.maxMs,
    });
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
  if (broken !== undefined) throw broken;
  return run.report(
    signal?.aborted === true && run.end === undefined ? "signal" : (run.end ?? "empty"),
    await run.countLeft(queues),
  );
}

class BoundedRun implements RunLimiter {
  reserve: BudgetReserve;
  readonly #platform: Platform;
  readonly #broker: Broker;
  readonly #limits: BudgetLimits;
  readonly #startedAt: number;
  readonly #requestsBefore: number;
  readonly #emptied = new Set<QueueLoop>();
  readonly #spent = new Set<QueueLoop>();
  /** Queues that have to wait for what others have in hand, and how much that was. */
  readonly #blocked = new Map<QueueLoop, number>();
  readonly #requestsPerJob = new Map<QueueLoop, number>();
  crew!: Crew;
  end: BudgetEnd | undefined;
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
    this.reserve = reserveFor(limits, queues, true, 0);
  }

  /** The queues are open. An engine that needed no request for it needs none at all; how long it took tells what a request takes. */
  begin(crew: Crew): void {
    this.crew = crew;
    this.#requestCosts = this.#broker.requests > 0 ? 1 : 0;
    const openedInMs = this.#platform.now() - this.#startedAt;
    this.reserve = reserveFor(this.#limits, crew.loops.length, this.#requestCosts > 0, openedInMs);
    for (const [index, loop] of crew.loops.entries()) {
      const learned = fromMemo(crew.queues[index]?.memo);
      if (learned !== undefined) this.#requestsPerJob.set(loop, learned.requestsPerJob);
    }
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

  room(loop: QueueLoop, wanted: number): number {
    if (this.#emptied.has(loop) || this.#spent.has(loop)) return 0;
    const { jobs, end } = roomFor(
      wanted,
      this.#limits,
      this.reserve,
      this.#spending(loop),
      this.#requestCosts,
    );
    if (jobs >= 1) return jobs;
    if (this.crew.quiet) {
      this.end ??= end;
      this.#spent.add(loop);
    } else {
      this.#blocked.set(loop, this.#held());
    }
    return 0;
  }

  mayStart(loop: QueueLoop): boolean {
    const end = startRefused(this.#limits, this.reserve, this.#spending(loop));
    if (end === undefined) return true;
    // Were it to claim again, it would take and give back the same jobs over and over.
    this.end ??= end;
    this.#spent.add(loop);
    return false;
  }

  mayClaimAgain(loop: QueueLoop): boolean {
    if (!this.saving()) return true;
    this.end ??= "requests";
    this.#spent.add(loop);
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

  ran(loop: QueueLoop, _ms: number, requests: number, jobs: number): void {
    const each = requests / jobs;
    const known = this.#requestsPerJob.get(loop);
    this.#requestsPerJob.set(
      loop,
      known === undefined ? each : Math.max(each, known + REQUESTS_WEIGHT * (each - known)),
    );
  }

  memo(loop: QueueLoop): string | undefined {
    if (!this.#broker.capabilities.has("memo")) return undefined;
    const { averageMs, prefetch } = loop.asking;
    const requestsPerJob = this.#requestsPerJob.get(loop);
    return averageMs === undefined || requestsPerJob === undefined
      ? undefined
      : toMemo({ averageMs, prefetch, requestsPerJob });
  }

  changed(): void {
    if (this.#blocked.size === 0) return;
    const held = this.#held();
    for (const [loop, heldThen] of this.#blocked) {
      if (held === heldThen && !this.crew.quiet) continue;
      this.#blocked.delete(loop);
      queueMicrotask(loop.wake);
    }
  }

  emptied(loop: QueueLoop): void {
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

  /** Asks what is left, if there is budget for it. */
  async countLeft(queues: readonly WorkerQueue[]): Promise<number | null> {
    if (!this.#broker.capabilities.has("sizes")) return null;
    // Two a queue: the engine may have forgotten its script.
    if (!this.#affords(2 * queues.length * this.#requestCosts)) return null;
    try {
      let left = 0;
      // The run's own queues: others of the same names would have to be opened first, which may cost requests.
      for (const [index, { options }] of queues.entries()) {
        const queue = this.crew.queues[index] as BrokerQueue;
        const leftMs = this.#startedAt + this.#limits.maxMs - this.#platform.now();
        if (leftMs <= 0 || queue.sizes === undefined) return null;
        const { ready, delayed, held } = await withDeadline(
          this.#platform,
          Math.min(options.settings.requestTimeoutMs, leftMs),
          this.#broker.name,
          "sizes",
          queue.sizes(),
        );
        left += ready + delayed + held;
      }
      return left;
    } catch {
      // The work is done and settled; not knowing what is left is no reason to call the run failed.
      return null;
    }
  }

  report(stopped: DrainReport["stopped"], left: number | null): DrainReport {
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
    return { ...sum, requests: this.requests, ms: this.#platform.now() - this.#startedAt, stopped, left };
  }

  #affords(requests: number): boolean {
    return this.requests + requests <= this.#limits.maxRequests;
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

  #spending(loop: QueueLoop): Spending {
    return {
      elapsedMs: this.#platform.now() - this.#startedAt,
      requests: this.requests,
      jobs: this.#jobs + this.#asked(),
      held: this.#held(),
      slots: loop.slots,
      averageMs: loop.asking.averageMs,
      roundTripMs: loop.asking.roundTripMs,
      requestsPerJob: this.#requestsPerJob.get(loop),
    };
  }
}

function nextFailures(event: EddyEvent, failures: number): number {
  if (event.type === "claimed") return 0;
  return event.type === "brokerError" && event.retryInMs !== undefined ? failures + 1 : failures;
}

function chosenQueues(
  definition: WorkerDefinition,
  names: readonly string[] | undefined,
): readonly WorkerQueue[] {
  if (names === undefined) return definition.queues;
  const known = new Map(definition.queues.map((one) => [one.handler.queue.name, one]));
  return [...new Set(names)].map((name) => {
    const one = known.get(name);
    if (one === undefined) {
      throw new RangeError(
        `Cannot drain queue ${name.slice(0, 100)}: it is unknown to this worker; it knows ${[...known.keys()].join(", ")}`,
      );
    }
    return one;
  });
}

function resolveBudget(options: BudgetOptions, platform: Platform): BudgetLimits {
  const field = (name: keyof BudgetOptions, otherwise: number): number => {
    const value = options[name];
    if (value === undefined) return otherwise;
    if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 1) {
      const kind = typeof value === "number" ? String(value) : `a ${typeof value}`;
      throw new RangeError(`Cannot drain: ${name} is ${kind}; give a whole number from 1 on`);
    }
    return value;
  };
  return {
    maxMs: field("maxMs", platform.limits.wallMs),
    maxRequests: field("maxRequests", platform.limits.requests),
    maxJobs: field("maxJobs", Number.POSITIVE_INFINITY),
  };
}
