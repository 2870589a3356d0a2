/**
 * From what a handler did to what becomes of its job. Pure.
 *
 * @module
 */
import { fullJitter } from "./backoff.ts";
import type { Delivery, Verdict } from "./broker.ts";
import { isPermanent, type JobTimeoutError } from "./errors.ts";
import type { BackoffOptions } from "./options.ts";
import { ignoreRejection } from "./promises.ts";
import { cutErrorText, describeThrown } from "./thrown.ts";

/** How a handler ended. */
export type Outcome =
  | { readonly kind: "returned" }
  | { readonly kind: "threw"; readonly error: unknown }
  /** It called `job.retry`. */
  | { readonly kind: "retry"; readonly delayMs: number | undefined; readonly reason: string | undefined }
  /** It called `job.deadLetter`, or the job could not be given to a handler at all. */
  | { readonly kind: "dead"; readonly reason: string }
  /** It threw after the worker's stop had aborted it, or was never called because of it: not the job's fault. */
  | { readonly kind: "interrupted" }
  /** It was told to stop, by its `timeout` or else by the run's end, and still ran when no more could be waited. `delayMs` is what it had asked for itself. */
  | {
      readonly kind: "ignored";
      readonly delayMs: number | undefined;
      readonly timeout: JobTimeoutError | undefined;
    };

export interface VerdictContext {
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly retryDelayMs: BackoffOptions | ((attempt: number) => number);
  readonly random: () => number;
  /** How long the job's lease still holds, in whole milliseconds. */
  readonly leaseLeftMs: number;
}

const ACK: Verdict = Object.freeze({ kind: "ack" });
const RELEASE: Verdict = Object.freeze({ kind: "release" });
const IGNORED =
  "The handler ignored its signal when the run ended; make it heed job.signal, or give the run more time";

/** Whether its handler still ran at the run's end, so that it is not known how long it takes. */
export function isLeftAtEnd(outcome: Outcome | undefined): boolean {
  return outcome?.kind === "ignored" && outcome.timeout === undefined;
}

/** What becomes of a job, by how its handler ended. */
export function verdictOf(outcome: Outcome, context: VerdictContext): Verdict {
  switch (outcome.kind) {
    case "returned":
      return ACK;
    case "interrupted":
      return RELEASE;
    case "dead":
      return { kind: "dead", error: cutErrorText(outcome.reason) };
    case "retry": {
      const reason = outcome.reason ?? "the handler asked for a retry";
      return again(context, reason, outcome.delayMs);
    }
    case "ignored": {
      const { timeout } = outcome;
      const reason =
        timeout === undefined
          ? IGNORED
          : `${describeThrown(timeout)}, and ignored its signal; make it heed job.signal`;
      // It may go on for a while: its job does not come back sooner than if it were left to its lease.
      return again(context, reason, Math.max(context.leaseLeftMs, outcome.delayMs ?? retryDelay(context)));
    }
    case "threw": {
      const text = describeThrown(outcome.error);
      if (isPermanent(outcome.error)) return { kind: "dead", error: cutErrorText(text) };
      return again(context, text, undefined);
    }
  }
}

/**
 * Whether a delivery may not be run any more: its attempts are used up. Mostly its last holder vanished on its last attempt; where it
 * did not, `maxAttempts` was larger then. The claim that finds it so is no attempt, nor is one whose holder vanished before it could
 * bury it.
 */
export function attemptsUsedUp(
  { attempt, suspect }: Pick<Delivery, "attempt" | "suspect">,
  maxAttempts: number,
): Verdict | undefined {
  if (attempt <= maxAttempts) return undefined;
  const attempts = suspect ? maxAttempts : attempt - 1;
  const error = suspect
    ? `The worker vanished while it held attempt ${attempts} of ${maxAttempts}; no attempt is left`
    : `It has failed ${attempts} times, and maxAttempts is ${maxAttempts} by now; no attempt is left`;
  return { kind: "dead", error, attempts };
}

function again(context: VerdictContext, reason: string, delayMs: number | undefined): Verdict {
  if (context.attempt >= context.maxAttempts) return { kind: "dead", error: cutErrorText(reason) };
  return { kind: "retry", delayMs: delayMs ?? retryDelay(context), error: cutErrorText(reason) };
}

function retryDelay({ attempt, retryDelayMs, random }: VerdictContext): number {
  if (typeof retryDelayMs !== "function") {
    return fullJitter(attempt, random(), retryDelayMs.baseMs ?? 1_000, retryDelayMs.maxMs ?? 600_000);
  }
  let ms: number;
  try {
    ms = retryDelayMs(attempt);
    // An async one is as faulty as one that throws, and its rejection ends nothing.
    ignoreRejection(ms);
  } catch {
    ms = Number.NaN;
  }
  // A faulty backoff function must not cost the job: the default takes its place.
  if (!Number.isFinite(ms) || ms < 0) return fullJitter(attempt, random(), 1_000, 600_000);
  return Math.min(Math.floor(ms), Number.MAX_SAFE_INTEGER);
}
