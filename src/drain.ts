/**
 * A drain: a bounded run of the consume loop. Takes jobs until the queues are empty or the budget is used up, settles all, gives back what was not started, reports, stops.
 *
 * @module
 */

import { BoundedRun } from "./bounded_run.ts";
import type { Broker } from "./broker.ts";
import type { BudgetLimits } from "./budget.ts";
import { Crew } from "./crew.ts";
import { assertDefinition, assertEngines, assertHearers, assertNames, assertSignal } from "./deps.ts";
import type { DrainReport } from "./drain_report.ts";
import { type EddyEvent, type EventListener, Events } from "./events.ts";
import type { LogSink } from "./job.ts";
import { assertKnownFields } from "./known_fields.ts";
import type { Platform } from "./platform.ts";
import type { WorkerDefinition, WorkerQueue } from "./worker.ts";

export type { DrainReport } from "./drain_report.ts";

/** What a drain may spend. Each by default what the platform's invocation allows. */
export interface BudgetOptions {
  /** Wall time in milliseconds. */
  readonly maxMs?: number | undefined;
  /** Requests, the broker's and the handlers' `job.fetch` together. */
  readonly maxRequests?: number | undefined;
  readonly maxJobs?: number | undefined;
  /**
   * Processor time that one job takes, in milliseconds, with its share of the run's own work: no runtime lets a program measure it, so it has to be said. Then a run takes no more
   * jobs than the invocation's processor time (`platform.limits.cpuMs`) has room for. Not set by default: processor time bounds nothing then.
   */
  readonly cpuMsPerJob?: number | undefined;
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

const DEPS_FIELDS: ReadonlySet<string> = new Set<keyof DrainDeps>([
  "broker",
  "platform",
  "log",
  "on",
  "queues",
  "signal",
  "budget",
]);
const BUDGET_FIELDS: ReadonlySet<string> = new Set<keyof BudgetOptions>([
  "maxMs",
  "maxRequests",
  "maxJobs",
  "cpuMsPerJob",
]);

/** A drain gives up on a broker after so many failures in a row. */
const MOST_FAILURES = 6;

/**
 * Drains queues within a budget.
 *
 * @example
 * ```ts
 * const report = await drain(worker, { broker, platform, budget: { maxMs: 20_000 } });
 * ```
 *
 * @throws {TypeError} when an option or a budget's field is unknown, or of the wrong kind.
 * @throws {RangeError} when a budget's field is no whole number from 1 on, no job could ever be done within it, or a queue is unknown.
 * @throws {BrokerRefusedError | BrokerError} when the broker cannot be used, or fails again and again.
 */
export async function drain(definition: WorkerDefinition, deps: DrainDeps): Promise<DrainReport> {
  assertDefinition("drain", definition);
  assertKnownFields("drain", "", deps, DEPS_FIELDS);
  assertEngines("drain", deps);
  assertHearers("drain", deps);
  assertSignal("drain", deps.signal);
  assertNames("drain", deps.queues);
  const { broker, platform, signal } = deps;
  const queues = chosenQueues(definition, deps.queues);
  const limits = resolveBudget(deps.budget === undefined ? {} : deps.budget, platform);
  const startedAt = platform.now();
  const startedAtWall = platform.wallNow();
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
    endsAt: () => startedAtWall + run.workMs,
    beforeFetch: () => run.beforeFetch(),
    refused: (error) => {
      broken ??= error;
    },
  });
  run.begin(crew);
  const graceMs = () => Math.min(definition.graceMs, run.leftMs());
  const onAbort = () => {
    const reason = typeof signal?.reason === "string" ? signal.reason : "its signal was aborted";
    events.emit({ type: "stopping", reason, running: crew.running, graceMs: graceMs() });
    crew.stopTaking(graceMs());
    crew.changes.notify();
  };
  signal?.addEventListener("abort", onAbort);
  try {
    if (signal?.aborted !== true) await crew.start();
    const { finished, lateMs } = await finishedInTime(
      run,
      platform,
      () => broken !== undefined || signal?.aborted === true || run.over(),
    );
    if (!finished) run.end ??= "time";
    await crew.end(`the drain is over: ${finished ? "stopped" : "its time is used up"}`, {
      graceMs: signal?.aborted ? graceMs() : 0,
      abortWaitMs: Math.min(
        definition.abortWaitMs,
        run.reserve.ms === 0 ? Number.POSITIVE_INFINITY : run.reserve.ms / 2,
      ),
      settleWaitMs: definition.settleWaitMs,
      by: startedAt + limits.maxMs + lateMs,
    });
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
  if (broken !== undefined) throw broken;
  return run.report(queues, signal?.aborted === true);
}

/** How a run came to its end. */
interface Finish {
  /** Whether it was over, not only its time for work. */
  readonly finished: boolean;
  /** How much later than that time this was noticed, in milliseconds: so long a handler computed without a pause. */
  readonly lateMs: number;
}

/** Resolves once the run is over, or its time for work is: what is kept back may change meanwhile. */
async function finishedInTime(run: BoundedRun, platform: Platform, over: () => boolean): Promise<Finish> {
  for (;;) {
    const { workMs } = run;
    const leftMs = run.leftMs();
    const endsAt = platform.now() + leftMs;
    await run.crew.changes.until(platform, leftMs, () => over() || run.workMs !== workMs);
    const finished = over();
    if (finished || run.leftMs() <= 0) return { finished, lateMs: Math.max(0, platform.now() - endsAt) };
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
  assertKnownFields("drain", "budget", options, BUDGET_FIELDS);
  const field = (name: "maxMs" | "maxRequests" | "maxJobs", otherwise: number): number => {
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
    maxJobs: Math.min(
      field("maxJobs", Number.POSITIVE_INFINITY),
      jobsByCpu(options.cpuMsPerJob, platform.limits.cpuMs),
    ),
  };
}

function jobsByCpu(cpuMsPerJob: number | undefined, cpuMs: number): number {
  if (cpuMsPerJob === undefined) return Number.POSITIVE_INFINITY;
  if (typeof cpuMsPerJob !== "number" || !(cpuMsPerJob > 0 && cpuMsPerJob <= cpuMs)) {
    const kind = typeof cpuMsPerJob === "number" ? String(cpuMsPerJob) : `a ${typeof cpuMsPerJob}`;
    throw new RangeError(
      `Cannot drain: cpuMsPerJob is ${kind}; give milliseconds above 0 and up to the invocation's ${cpuMs}`,
    );
  }
  return Math.floor(cpuMs / cpuMsPerJob);
}
