/**
 * The options of a worker, resolved and checked once. Every field's unit, default and reason stands here.
 *
 * @module
 */
import type { BrokerLimits, QueueSettings } from "./broker.ts";
import type { LogSink } from "./job.ts";
import { assertKnownFields } from "./known_fields.ts";
import { FIRST_RENEWAL_SHARE, leaseMarginMs } from "./lease.ts";

/** How the delay before a retry grows. */
export interface BackoffOptions {
  /** The first delay's upper end, in milliseconds. Default 1,000. */
  readonly baseMs?: number;
  /** The upper end of any delay, in milliseconds. Default 600,000 (ten minutes). */
  readonly maxMs?: number;
}

/** How one queue is consumed. */
export interface HandlerOptions {
  /** How many handlers run at a time. Default 1. */
  readonly concurrency?: number;
  /**
   * How many jobs one claim asks for: a number (never less than the free slots), or `"auto"`: as many as hold about 250 ms of work, per
   * free slot. Default `"auto"`; a batch handler's `batchSize`; and 1 where `maxAttempts` is 1 or leases are not renewed.
   */
  readonly prefetch?: number | "auto";
  /** How often a job may be tried before it becomes a dead letter. Default 5. */
  readonly maxAttempts?: number;
  /** Delays before retries: exponential with full jitter, or a function of the attempt that just failed (1, 2, …) to milliseconds. */
  readonly backoff?: BackoffOptions | ((attempt: number) => number);
  /**
   * How long a handler may run, in milliseconds, before its signal is aborted and the job retried. One that ignores it loses its slot 2 seconds later, and its job comes again no
   * sooner than its lease would have ended. By default as long as it likes.
   */
  readonly timeoutMs?: number;
  /** How long a claim holds its jobs, in milliseconds; renewed at a third of it while they run. Default 30,000. */
  readonly leaseMs?: number;
  /** Whether leases are renewed. Default true. Without it a claim may take one job a slot, and a job must be done within one lease. */
  readonly renew?: boolean;
  /** How long a request to the broker may take, in milliseconds. Default a fifth of the lease, 5,000 at most. */
  readonly requestTimeoutMs?: number;
  /** How long a finished job may wait for a request to ride on before it is settled by one of its own, in milliseconds. Default 250. */
  readonly settleWithinMs?: number;
  /** The first and the longest gap between looks at an empty queue, in milliseconds, where the broker does not wake. Default 50 and 5,000. */
  readonly pollMs?: { readonly min?: number; readonly max?: number };
  /** The longest gap between looks at an empty queue, in milliseconds, where the broker wakes: a safety net. Default 40,000. */
  readonly safetyPollMs?: number;
  /** Whether the next claim may be sent before the last one's jobs are done, to hide the link's latency. Default true. */
  readonly claimAhead?: boolean;
}

/** Options of the whole worker. */
export interface WorkerOptions {
  /** After a stop, how long running handlers may go on before their signals are aborted, in milliseconds. Default 10,000. */
  readonly graceMs?: number;
  /** How long handlers may take to heed their aborted signal, in milliseconds. Default 2,000. */
  readonly abortWaitMs?: number;
  /** How long the last settlements may take after that, in milliseconds. Default 5,000. */
  readonly settleWaitMs?: number;
  /** Where log lines go. By default nowhere; runtimes print them. */
  readonly log?: LogSink;
}

/** A queue with its handler, as far as options are read from it. */
interface Configured {
  readonly queue: { readonly name: string; readonly dedupeWindowMs: number };
  readonly run: { readonly kind: "single" } | { readonly kind: "batch"; readonly batchSize: number };
  readonly options: HandlerOptions;
}

/** Everything about one queue's consumption, checked. */
export interface ResolvedOptions {
  readonly concurrency: number;
  readonly prefetch: number | "auto";
  readonly maxAttempts: number;
  readonly retryDelayMs: BackoffOptions | ((attempt: number) => number);
  readonly timeoutMs: number | undefined;
  readonly renew: boolean;
  readonly settleWithinMs: number;
  readonly pollMinMs: number;
  readonly pollMaxMs: number;
  readonly safetyPollMs: number;
  readonly claimAhead: boolean;
  readonly batchSize: number;
  readonly settings: QueueSettings;
}

function refuse(queue: string, field: string, is: string, mend: string): never {
  throw new RangeError(`Cannot consume queue ${queue}: ${field} is ${is}; ${mend}`);
}

function whole(
  queue: string,
  field: string,
  value: number,
  least: number,
  most = Number.MAX_SAFE_INTEGER,
): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < least || value > most) {
    const kind = typeof value === "number" ? String(value) : `a ${typeof value}`;
    const range = most === Number.MAX_SAFE_INTEGER ? `from ${least} on` : `from ${least} to ${most}`;
    refuse(queue, field, kind, `give a whole number ${range}`);
  }
  return value;
}

function flag(queue: string, field: string, value: boolean): boolean {
  if (typeof value !== "boolean") refuse(queue, field, `a ${typeof value}`, "give true or false");
  return value;
}

const BACKOFF_FIELDS: ReadonlySet<string> = new Set<keyof BackoffOptions>(["baseMs", "maxMs"]);
const POLL_FIELDS: ReadonlySet<string> = new Set<keyof NonNullable<HandlerOptions["pollMs"]>>(["min", "max"]);
const HANDLER_FIELDS: ReadonlySet<string> = new Set<keyof HandlerOptions>([
  "concurrency",
  "prefetch",
  "maxAttempts",
  "backoff",
  "timeoutMs",
  "leaseMs",
  "renew",
  "requestTimeoutMs",
  "settleWithinMs",
  "pollMs",
  "safetyPollMs",
  "claimAhead",
]);

/** The longest time a timer of every platform can be set to (a signed 32-bit number of milliseconds). */
export const LONGEST_TIMER_MS = 2_147_483_647;

/**
 * Fills in the defaults of one queue's options and checks every value by itself and against the others.
 *
 * @throws {TypeError} "Cannot consume queue …: FIELD is no option; …" for one that is unknown.
 * @throws {RangeError} "Cannot consume queue …: FIELD is …; …" for the first that cannot work.
 */
export function resolveOptions(handler: Configured): ResolvedOptions {
  const queue = handler.queue.name;
  const { options } = handler;
  assertKnownFields(`consume queue ${queue}`, "", options, HANDLER_FIELDS);
  const maxAttempts = whole(queue, "maxAttempts", options.maxAttempts ?? 5, 1, 1_000_000);
  const concurrency = whole(queue, "concurrency", options.concurrency ?? 1, 1, 100_000);
  const renew = flag(queue, "renew", options.renew ?? true);
  const claimAhead = flag(queue, "claimAhead", options.claimAhead ?? true);
  const careful = maxAttempts === 1 || !renew;
  const batchSize = handler.run.kind === "batch" ? handler.run.batchSize : 1;
  const prefetch = options.prefetch ?? (careful ? 1 : batchSize > 1 ? batchSize : "auto");
  if (prefetch !== "auto") whole(queue, "prefetch", prefetch, 1, 100_000);
  if (!renew && prefetch !== 1) {
    refuse(
      queue,
      "prefetch",
      shown(prefetch),
      "jobs that wait in a batch need their lease renewed: set renew to true or prefetch to 1",
    );
  }
  if (maxAttempts === 1 && prefetch !== 1) {
    refuse(
      queue,
      "prefetch",
      shown(prefetch),
      "with maxAttempts 1 a crash would dead-letter jobs that never started: set prefetch to 1 or maxAttempts to 2 or more",
    );
  }
  if (batchSize > 1 && (!renew || maxAttempts === 1) && prefetch !== "auto" && batchSize > prefetch) {
    refuse(
      queue,
      "batchSize",
      String(batchSize),
      "with prefetch 1 a batch can only hold one job: set batchSize to 1",
    );
  }
  const leaseMs = whole(queue, "leaseMs", options.leaseMs ?? 30_000, 100, LONGEST_TIMER_MS);
  const requestTimeoutMs = whole(
    queue,
    "requestTimeoutMs",
    options.requestTimeoutMs ?? Math.max(10, Math.min(5_000, Math.floor(leaseMs / 5))),
    1,
    LONGEST_TIMER_MS,
  );
  const timeoutMs =
    options.timeoutMs === undefined
      ? undefined
      : whole(queue, "timeoutMs", options.timeoutMs, 1, LONGEST_TIMER_MS);
  const pollMs = options.pollMs ?? {};
  assertKnownFields(`consume queue ${queue}`, "pollMs", pollMs, POLL_FIELDS);
  const pollMinMs = whole(queue, "pollMs.min", pollMs.min ?? 50, 1, LONGEST_TIMER_MS);
  const pollMaxMs = whole(queue, "pollMs.max", pollMs.max ?? Math.max(5_000, pollMinMs), 1, LONGEST_TIMER_MS);
  if (pollMaxMs < pollMinMs)
    refuse(queue, "pollMs.max", String(pollMaxMs), `raise it to pollMs.min (${pollMinMs}) or more`);
  const settleWithinMs = whole(queue, "settleWithinMs", options.settleWithinMs ?? 250, 0, LONGEST_TIMER_MS);
  assertFitsLease(queue, { renew, requestTimeoutMs, timeoutMs, settleWithinMs }, leaseMs);
  return Object.freeze<ResolvedOptions>({
    concurrency,
    prefetch,
    maxAttempts,
    retryDelayMs: checkBackoff(queue, options.backoff ?? {}),
    timeoutMs,
    renew,
    settleWithinMs,
    pollMinMs,
    pollMaxMs,
    safetyPollMs: whole(queue, "safetyPollMs", options.safetyPollMs ?? 40_000, 1, LONGEST_TIMER_MS),
    claimAhead: claimAhead && !careful,
    batchSize,
    settings: Object.freeze({ leaseMs, requestTimeoutMs, dedupeWindowMs: handler.queue.dedupeWindowMs }),
  });
}

function shown(prefetch: number | "auto"): string {
  return prefetch === "auto" ? '"auto"' : String(prefetch);
}

function checkBackoff(
  queue: string,
  backoff: BackoffOptions | ((attempt: number) => number),
): BackoffOptions | ((attempt: number) => number) {
  if (typeof backoff === "function") return backoff;
  assertKnownFields(`consume queue ${queue}`, "backoff", backoff, BACKOFF_FIELDS);
  const baseMs = whole(queue, "backoff.baseMs", backoff.baseMs ?? 1_000, 0, LONGEST_TIMER_MS);
  const maxMs = whole(
    queue,
    "backoff.maxMs",
    backoff.maxMs ?? Math.max(600_000, baseMs),
    0,
    LONGEST_TIMER_MS,
  );
  if (maxMs < baseMs)
    refuse(queue, "backoff.maxMs", String(maxMs), `raise it to backoff.baseMs (${baseMs}) or more`);
  return Object.freeze({ baseMs, maxMs });
}

/** Checks all that has to happen within one lease. */
function assertFitsLease(
  queue: string,
  options: Pick<ResolvedOptions, "renew" | "timeoutMs" | "settleWithinMs"> &
    Pick<QueueSettings, "requestTimeoutMs">,
  leaseMs: number,
): void {
  const { renew, requestTimeoutMs, timeoutMs, settleWithinMs } = options;
  if (renew) assertRenewalLands(queue, leaseMs, requestTimeoutMs);
  if (!renew && timeoutMs !== undefined && timeoutMs + requestTimeoutMs >= leaseMs) {
    refuse(
      queue,
      "timeoutMs",
      String(timeoutMs),
      `without renewal a job must be done within its lease of ${leaseMs} ms: raise leaseMs, lower timeoutMs or set renew to true`,
    );
  }
  if (settleWithinMs * 2 > leaseMs) {
    refuse(
      queue,
      "settleWithinMs",
      String(settleWithinMs),
      `settle within half of the lease of ${leaseMs} ms`,
    );
  }
}

/**
 * A renewal must be able to fail once and still land: the first is sent at a third of the lease, may take a whole request timeout to fail, and the second
 * as long again, and there must be a margin left.
 */
function assertRenewalLands(queue: string, leaseMs: number, requestTimeoutMs: number): void {
  const needed = leaseMs * FIRST_RENEWAL_SHARE + 2 * requestTimeoutMs + leaseMarginMs(leaseMs);
  if (needed >= leaseMs) {
    refuse(
      queue,
      "requestTimeoutMs",
      String(requestTimeoutMs),
      `a renewal that fails once could not land before the lease of ${leaseMs} ms ends: lower requestTimeoutMs below ${Math.floor((leaseMs - leaseMs * FIRST_RENEWAL_SHARE - leaseMarginMs(leaseMs)) / 2)} or raise leaseMs`,
    );
  }
}

/**
 * Checks resolved options against what the broker can do, once its queue is open.
 *
 * @throws {RangeError} "Cannot consume queue …: FIELD is …; …".
 */
export function assertBrokerCan(
  queue: string,
  options: ResolvedOptions,
  limits: BrokerLimits,
  brokerName: string,
): void {
  if (!limits.renewable && options.prefetch !== 1) {
    refuse(
      queue,
      "prefetch",
      shown(options.prefetch),
      `the ${brokerName} broker renews no leases: set prefetch to 1`,
    );
  }
  if (options.renew && !limits.renewable)
    refuse(queue, "renew", "true", `the ${brokerName} broker renews no leases: set renew to false`);
  if (limits.exclusive && options.concurrency > 1) {
    refuse(
      queue,
      "concurrency",
      String(options.concurrency),
      "the queue delivers one job at a time: set concurrency to 1",
    );
  }
  const most = Math.min(limits.maxBatch, limits.maxInFlight);
  if (options.prefetch !== "auto" && options.prefetch > most) {
    refuse(
      queue,
      "prefetch",
      String(options.prefetch),
      `the ${brokerName} broker hands out ${most} at most: lower prefetch`,
    );
  }
  if (options.batchSize > most) {
    refuse(
      queue,
      "batchSize",
      String(options.batchSize),
      `the ${brokerName} broker hands out ${most} at most: lower batchSize`,
    );
  }
  if (options.concurrency > limits.maxInFlight) {
    refuse(
      queue,
      "concurrency",
      String(options.concurrency),
      `the ${brokerName} broker lets ${limits.maxInFlight} be held at most: lower concurrency`,
    );
  }
  if (limits.leaseMs !== options.settings.leaseMs) {
    const { requestTimeoutMs } = options.settings;
    assertFitsLease(queue, { ...options, requestTimeoutMs }, limits.leaseMs);
  }
}
