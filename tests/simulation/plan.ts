/**
 * The plan of one simulated world, as plain data: everything that happens in it follows from its plan. Times are milliseconds from the
 * world's beginning, on the broker's clock.
 *
 * @module
 */
import type { Capability, Priority } from "../../src/broker.ts";

/** What a job's handler does. `ms` is time it takes before that. */
export type Behaviour =
  | { readonly kind: "instant" }
  /** Works for so long; `heeds`: it stops, and throws, when its signal is aborted. */
  | { readonly kind: "works"; readonly ms: number; readonly heeds: boolean }
  /** Computes: nothing else of its worker runs meanwhile. */
  | { readonly kind: "computes"; readonly ms: number }
  /** Throws the first `times` times. `permanent`: with a PermanentError, always. */
  | { readonly kind: "throws"; readonly times: number; readonly ms: number; readonly permanent: boolean }
  /** Calls `job.retry` the first `times` times. */
  | {
      readonly kind: "retries";
      readonly times: number;
      readonly ms: number;
      readonly delayMs: number | undefined;
    }
  | { readonly kind: "deadLetters"; readonly ms: number }
  /** Hangs until its signal is aborted, the first `times` times (until the calm at the latest). */
  | { readonly kind: "hangs"; readonly times: number }
  /** Kills its worker, the first `times` times. */
  | { readonly kind: "kills"; readonly times: number; readonly ms: number }
  /** Makes so many requests through `job.fetch`, one after the other. */
  | { readonly kind: "fetches"; readonly requests: number; readonly ms: number };

export interface QueuePlan {
  readonly name: string;
  readonly leaseMs: number;
  readonly requestTimeoutMs: number;
  readonly renew: boolean;
  readonly concurrency: number;
  readonly prefetch: number | "auto";
  /** 1 for a handler of single jobs. */
  readonly batchSize: number;
  readonly maxAttempts: number;
  readonly timeoutMs: number | undefined;
  readonly settleWithinMs: number;
  readonly claimAhead: boolean;
  readonly backoffMs: number;
  readonly pollMs: readonly [least: number, most: number];
  readonly safetyPollMs: number;
}

/** How a machine's clock differs from the broker's. */
export interface ClockPlan {
  /** By how much it is ahead, in milliseconds. */
  readonly skewMs: number;
  /** By how much it is fast, in millionths. */
  readonly driftPpm: number;
  /** How often a timer fires before its time. */
  readonly early: number;
}

export type LifeEvent =
  /** The machine is gone; another takes its place after `downMs`. */
  | { readonly atMs: number; readonly kind: "crash"; readonly downMs: number }
  /** `stop()` is called; once it answered, another machine starts after `downMs`. */
  | { readonly atMs: number; readonly kind: "stop"; readonly downMs: number; readonly twice: boolean }
  /** Nothing of the machine runs for so long. */
  | { readonly atMs: number; readonly kind: "freeze"; readonly forMs: number };

export interface EndPlan {
  readonly graceMs: number;
  readonly abortWaitMs: number;
  readonly settleWaitMs: number;
}

export interface WorkerPlan extends ClockPlan, EndPlan {
  readonly startMs: number;
  /** Indices of the queues it serves. */
  readonly queues: readonly number[];
  readonly events: readonly LifeEvent[];
}

/** One bounded run. */
export interface DrainPlan extends ClockPlan, EndPlan {
  readonly startMs: number;
  readonly queues: readonly number[];
  readonly maxMs: number;
  readonly maxRequests: number | undefined;
  readonly maxJobs: number | undefined;
  readonly signalAfterMs: number | undefined;
  readonly crashAfterMs: number | undefined;
}

export interface JobPlan {
  readonly atMs: number;
  readonly queue: number;
  readonly priority: Priority;
  readonly delayMs: number;
  /** Whether it is enqueued under an id of its own, and again until that is answered. */
  readonly ownId: boolean;
  /** With an id of its own: enqueued a second time, so much later. */
  readonly againAfterMs: number | undefined;
  readonly does: Behaviour;
  /** Whether its handler looks at its signal. */
  readonly looks: boolean;
}

/** What somebody does to a queue who tends it. */
export type TendingPlan =
  | { readonly atMs: number; readonly queue: number; readonly kind: "pause"; readonly forMs: number }
  /** Puts all dead letters back. */
  | { readonly atMs: number; readonly queue: number; readonly kind: "redrive" };

/**
 * What the link does to a request.
 *
 * - `lost`: it never arrives, and fails after a while.
 * - `replyLost`: it takes effect, then fails.
 * - `hangs`, `hangsAfter`: the same two, but it is never answered at all.
 * - `error`: it is answered with an error of some kind, and took no effect.
 * - `refused`: it is answered with the final error.
 * - `throws`: the adapter throws instead of answering with a rejected promise.
 * - `slow`: both ways take up to `ms` longer.
 * - `repeats`: it takes effect, and a copy arrives again within `ms`.
 * - `cut`: nothing passes, requests hang and watches break.
 */
export type FaultKind =
  | "lost"
  | "replyLost"
  | "hangs"
  | "hangsAfter"
  | "error"
  | "refused"
  | "throws"
  | "slow"
  | "repeats"
  | "cut";

export type LinkVerb =
  | "open"
  | "enqueue"
  | "claim"
  | "settle"
  | "renew"
  | "exchange"
  | "abandon"
  | "watch"
  | "unwatch"
  | "sizes";

export interface FaultPlan {
  readonly fromMs: number;
  readonly toMs: number;
  /** `"all"`, `"producer"`, `"drain0"`, `"worker0"`, … */
  readonly whose: string;
  readonly verbs: readonly LinkVerb[] | "all";
  /** How often it strikes. */
  readonly chance: number;
  readonly kind: FaultKind;
  readonly ms: number;
}

export interface Plan {
  readonly seed: number;
  /** Capabilities that the broker does without. */
  readonly lacks: readonly Capability[];
  /** Whether the broker holds claims open until something comes. It has no `exchange` and no `wake` then. */
  readonly waits: boolean;
  /** The most deliveries that the broker lets a worker hold; 0 for no limit. */
  readonly maxInFlight: number;
  /** How long a message takes one way. */
  readonly latencyMs: readonly [least: number, most: number];
  /** From then on nothing fails any more. */
  readonly calmMs: number;
  readonly queues: readonly QueuePlan[];
  readonly workers: readonly WorkerPlan[];
  readonly drains: readonly DrainPlan[];
  readonly jobs: readonly JobPlan[];
  readonly tending: readonly TendingPlan[];
  readonly faults: readonly FaultPlan[];
}
