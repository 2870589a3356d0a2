/**
 * What a drain tells at its end.
 *
 * @module
 */
import type { QueueSizes } from "./broker.ts";
import type { BudgetEnd } from "./budget.ts";

/**
 * What a run did. The deliveries it took are the sum of `acked`, `retried`, `dead`, `released` and `lost`; a job that came again within the run counts each time.
 */
export interface DrainReport {
  /** Jobs that a handler was called with: not those with an invalid body, nor any that the end of the run kept from it. */
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
  /** How long it took, in whole milliseconds. */
  readonly ms: number;
  /**
   * Why it ended. `"empty"`: nothing was ready any more, though delayed jobs, or ones that others hold, may be left. `"paused"`: the same, but for jobs that are ready in queues
   * that are paused. Otherwise the part of the budget that was used up, or the signal.
   */
  readonly stopped: DrainEnd;
  /**
   * Only where it ended for `"time"` though some was left: what a job took in this run, on average, and how much was left for jobs then, which had no room for one more. In
   * milliseconds.
   */
  readonly noRoomFor?: { readonly jobMs: number; readonly leftMs: number };
  /** Jobs left in the queues: ready, delayed and held. `null` where the broker cannot tell or the budget had no room to ask. */
  readonly left: number | null;
  /** Of these: ready to run. */
  readonly leftReady: number | null;
  /** Of these: waiting for their due time. */
  readonly leftDelayed: number | null;
  /** Of these: held by others, or lost here and to come back when their leases are over. */
  readonly leftHeld: number | null;
  /**
   * In how many milliseconds the next job is due that was not due yet: a delayed one, or one whose lease ends. 0 when it is due by now; `null` when none is known of (the last claim
   * that came back short told of the first alone, and it may be done by now), or the broker cannot tell.
   */
  readonly nextDueMs: number | null;
}

export type DrainEnd = "empty" | "paused" | BudgetEnd | "signal";

/** The part of a report that says what is left. */
export type Left = Pick<DrainReport, "left" | "leftReady" | "leftDelayed" | "leftHeld">;

export const LEFT_UNKNOWN: Left = Object.freeze({
  left: null,
  leftReady: null,
  leftDelayed: null,
  leftHeld: null,
});

/** Sums up what is left in the queues. */
export function leftOf(queues: readonly QueueSizes[]): Left {
  let [leftReady, leftDelayed, leftHeld] = [0, 0, 0];
  for (const { ready, delayed, held } of queues) {
    leftReady += ready;
    leftDelayed += delayed;
    leftHeld += held;
  }
  return { left: leftReady + leftDelayed + leftHeld, leftReady, leftDelayed, leftHeld };
}

/** Whether all that is ready is in queues that are paused, so that no run would get it. */
export function onlyPaused(queues: readonly QueueSizes[]): boolean {
  const withWork = queues.filter(({ ready }) => ready > 0);
  return withWork.length > 0 && withWork.every(({ paused }) => paused);
}
