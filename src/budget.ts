/**
 * What one run may still spend. Pure: times and counts come in as arguments.
 *
 * What a job costs, in time and in requests, a run takes from its own jobs once one of the queue has ended. Before that, what an earlier run learned sizes claims, but it ends
 * nothing: it may be long out of date. So each queue's first job is taken while anything is left for it, and no job already taken is kept from starting by it.
 * (Should it have been right, the job is interrupted at the run's end and goes back; one that ignores its signal is charged, as ever.) No average is longer than the longest job of the run was, so a run ends for want of room for one more only
 * when half of its time to work is over, at the least.
 *
 * @module
 */
import type { Learned as LearnedOfQueue } from "./learned.ts";

/** A run's budget. `Infinity` for no limit. */
export interface BudgetLimits {
  /** Wall time in milliseconds. */
  readonly maxMs: number;
  /** Requests, the broker's and the handlers' together. */
  readonly maxRequests: number;
  readonly maxJobs: number;
}

/** What is kept back so that all that was taken can be settled or released. */
export interface BudgetReserve {
  readonly ms: number;
  readonly requests: number;
}

/** What an earlier run learned of a queue's jobs. */
type Learned = Pick<LearnedOfQueue, "averageMs" | "requestsPerJob">;

export type BudgetEnd = "time" | "requests" | "jobs";

export interface Spending {
  /** Milliseconds since the run began. */
  readonly elapsedMs: number;
  /** Requests made so far. */
  readonly requests: number;
  /** Jobs taken so far. */
  readonly jobs: number;
  /** Jobs asked for or taken, and not finished. */
  readonly held: number;
  /** Of these: the queue's own. */
  readonly heldOfQueue: number;
  /** How many run side by side. */
  readonly slots: number;
  /** What a job of the queue has taken in this run, in milliseconds; `undefined` before the first has ended. */
  readonly averageMs: number | undefined;
  /** What a claim's round trip is expected to take, in milliseconds. */
  readonly roundTripMs: number;
  /** Requests a job's handler has made in this run; `undefined` before the first has ended. */
  readonly requestsPerJob: number | undefined;
  /** What an earlier run learned of the queue, if any did. */
  readonly learned: Learned | undefined;
}

/**
 * The time kept back to settle: this share of the whole, but no more than two seconds; and where the link is slow, as long as two requests take, one after the other, and half as
 * long again should they be slower than any before, but no more than half of the whole. Two, for one may be under way when the time is over.
 */
const RESERVE_SHARE = 0.1;
const MOST_RESERVE_MS = 2_000;
const RESERVE_REQUESTS = 2 * 1.5;
const MOST_RESERVE_SHARE = 0.5;

/** No request is planned with less, in milliseconds: a runtime's timers are late by one or two, its first calls are slow, and on a busy machine a process waits for its turn. */
const LEAST_REQUEST_MS = 5;

/** An engine inside this process opens files and lays out tables: no request takes more than this share of that. */
const OPENING_SHARE = 1 / 4;

/**
 * What a request is to be planned with, in milliseconds.
 *
 * @param slowestMs what the slowest took of late; `undefined` before the first was answered. Then opening says it.
 * @param openedInMs how long opening the queues took.
 * @param usesRequests whether the engine is reached by requests of the platform's. Then a first claim may take as long as opening did: a connection, and some to and fro.
 */
export function requestTime(
  slowestMs: number | undefined,
  openedInMs: number,
  usesRequests: boolean,
): number {
  const guessMs = usesRequests ? openedInMs : openedInMs * OPENING_SHARE;
  return Math.max(LEAST_REQUEST_MS, slowestMs ?? guessMs);
}

/**
 * What to keep back: time for a last round of settling, and for each queue one request to settle and release all it holds, with one more should the engine have forgotten its
 * script.
 *
 * @param requestMs what a request takes, in milliseconds: {@linkcode requestTime}.
 */
export function reserveFor(
  limits: BudgetLimits,
  queues: number,
  usesRequests: boolean,
  requestMs: number,
): BudgetReserve {
  const { maxMs } = limits;
  const usual = Math.min(MOST_RESERVE_MS, maxMs * RESERVE_SHARE);
  const slow = Math.min(RESERVE_REQUESTS * requestMs, maxMs * MOST_RESERVE_SHARE);
  return {
    ms: maxMs === Number.POSITIVE_INFINITY ? 0 : Math.max(usual, slow),
    requests: usesRequests ? 2 * queues : 0,
  };
}

/**
 * How many more jobs a claim may ask for, and which limit says so when it is none.
 */
export function roomFor(
  wanted: number,
  limits: BudgetLimits,
  reserve: BudgetReserve,
  spent: Spending,
  claimCosts: number,
): { readonly jobs: number; readonly end: BudgetEnd | undefined } {
  const byJobs = limits.maxJobs - spent.jobs;
  if (byJobs < 1) return { jobs: 0, end: "jobs" };
  const byTime = jobsByTime(limits, reserve, spent);
  if (byTime < 1) return { jobs: 0, end: "time" };
  const byRequests = jobsByRequests(limits, reserve, spent, claimCosts);
  if (byRequests < 1) return { jobs: 0, end: "requests" };
  return { jobs: Math.min(wanted, byJobs, byTime, byRequests), end: undefined };
}

/**
 * The least budget of requests that a run can do a job with, whichever queue it is in: once open, a claim from each queue, which the engine may have to be taught first, a request for
 * the job itself (it may make some, and nothing is known of it), and what has to be kept back.
 *
 * @param opened what opening the queues has cost.
 */
export function leastRequests(
  opened: number,
  queues: number,
  reserve: BudgetReserve,
  requestCosts: number,
): number {
  return opened + 2 * queues * requestCosts + 1 + reserve.requests;
}

function jobsByTime(limits: BudgetLimits, reserve: BudgetReserve, spent: Spending): number {
  if (limits.maxMs === Number.POSITIVE_INFINITY) return Number.POSITIVE_INFINITY;
  const leftMs = limits.maxMs - reserve.ms - spent.elapsedMs - spent.roundTripMs;
  if (leftMs <= 0) return 0;
  const expectedMs = spent.averageMs ?? spent.learned?.averageMs;
  // Of an unknown queue a claim takes one job a slot, to learn what it costs; whatever others hold: a run of many queues would learn of one after the other.
  if (expectedMs === undefined) return Math.max(0, spent.slots - spent.heldOfQueue);
  const least = spent.averageMs === undefined && spent.heldOfQueue === 0 ? 1 : 0;
  return Math.max(least, Math.floor((leftMs / Math.max(expectedMs, 0.01)) * spent.slots) - spent.held);
}

function jobsByRequests(
  limits: BudgetLimits,
  reserve: BudgetReserve,
  spent: Spending,
  claimCosts: number,
): number {
  if (limits.maxRequests === Number.POSITIVE_INFINITY) return Number.POSITIVE_INFINITY;
  const left = limits.maxRequests - reserve.requests - spent.requests - claimCosts;
  if (left < 0) return 0;
  const expected = spent.requestsPerJob ?? spent.learned?.requestsPerJob;
  if (expected === undefined)
    return Math.max(0, Math.min(Math.floor(left) - spent.held, spent.slots - spent.heldOfQueue));
  if (expected === 0) return Number.POSITIVE_INFINITY;
  const isFirst = spent.requestsPerJob === undefined && spent.heldOfQueue === 0;
  const least = isFirst && left >= 1 ? 1 : 0;
  return Math.max(least, Math.floor(left / expected) - spent.held);
}

/** Why a job already taken may not be started any more; `undefined` when it may. */
export function startRefused(
  limits: BudgetLimits,
  reserve: BudgetReserve,
  spent: Spending,
): BudgetEnd | undefined {
  const expectedMs = spent.averageMs ?? 0;
  const expectedRequests = spent.requestsPerJob ?? Math.min(spent.learned?.requestsPerJob ?? 0, 1);
  const leftMs = limits.maxMs - reserve.ms - spent.elapsedMs;
  if (leftMs <= 0 || leftMs < expectedMs) return "time";
  if (limits.maxRequests - reserve.requests - spent.requests < expectedRequests) return "requests";
  return undefined;
}
