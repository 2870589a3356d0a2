/**
 * When the next job of one queue is due, for a run's report: by what the engine's last answer told, as far as it is still true at the end. Pure.
 *
 * @module
 */
import type { QueueSizes } from "./broker.ts";

const NEVER = Number.POSITIVE_INFINITY;

export class NextDue {
  /** By the engine's last answer. */
  #toldAt = NEVER;
  /** By what the run sent back itself since then. */
  #ownAt = NEVER;

  /**
   * The engine answered a claim.
   *
   * @param now in milliseconds, as all times here.
   * @param nextDueMs in how many milliseconds something held or delayed is due; `undefined` when nothing is in sight.
   * @param ownEndsAt when the first of the run's own leases may end. It will be settled before, and what comes after it was not told.
   */
  told(now: number, nextDueMs: number | undefined, ownEndsAt: number): void {
    const at = nextDueMs === undefined ? NEVER : now + nextDueMs;
    const isOwn = at !== NEVER && at >= ownEndsAt;
    this.#toldAt = isOwn ? NEVER : at;
    // The answer knows of what went back before; of that only what is due later than the first is not in it.
    if (!isOwn || this.#ownAt < at) this.#ownAt = NEVER;
  }

  /** The run sent a job back that is due at `at`. */
  sentBack(at: number): void {
    this.#ownAt = Math.min(this.#ownAt, at);
  }

  /**
   * When it is due, 0 or more milliseconds from now; `undefined` when nothing is known of, or what was known of is there no more.
   *
   * @param sizes the queue's sizes now, where the engine can tell them.
   */
  inMs(now: number, sizes: QueueSizes | undefined): number | undefined {
    const at = Math.min(this.#toldAt, this.#ownAt);
    if (at === NEVER) return undefined;
    const isDue = at <= now;
    if (sizes !== undefined) {
      const { ready, delayed, held, paused } = sizes;
      if (paused) return undefined;
      // A lease that ran out counts as held until a claim takes its jobs back.
      if ((isDue ? ready + held : delayed + held) === 0) return undefined;
    }
    return isDue ? 0 : Math.ceil(at - now);
  }
}
