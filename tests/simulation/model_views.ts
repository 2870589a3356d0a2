/**
 * Jobs and leases as the model of the broker keeps them, and what is asked of each delivery.
 *
 * @module
 */
import type { ClaimReply, ClaimRequest, Delivery, NewJob } from "../../src/broker.ts";
import type { Fail } from "./violation.ts";

export interface JobView {
  readonly id: string;
  readonly body: NewJob["body"];
  /** 0 high, 1 normal, 2 low. */
  readonly level: number;
  state: "ready" | "delayed" | "held" | "acked" | "dead";
  /** Attempts charged and not taken back. */
  charged: number;
  suspect: boolean;
  dueAt: number;
  /** Its place in line: between these two. They differ where the contract leaves it open when a job that came due joined the tail. */
  earliest: number;
  latest: number;
  lease: LeaseView | undefined;
  /** Why it is a dead letter. */
  reason: string | undefined;
}

export interface Slot {
  readonly job: JobView;
  state: "held" | "done" | "lost";
}

export interface LeaseView {
  readonly id: string;
  /** Which machine claimed it. */
  readonly holder: string;
  readonly slots: Map<string, Slot>;
  deadline: number;
  over: boolean;
  endedAt: number;
}

/**
 * Whether a delivery says of its job what is so.
 *
 * @param more how many attempts more than charged it must say.
 */
export function checkDelivery(one: Delivery, job: JobView | undefined, more: number, fail: Fail): void {
  if (job === undefined) return;
  if (one.attempt !== job.charged + more) {
    fail("wrongAttempt", `job ${job.id} came as attempt ${one.attempt}; ${job.charged + more} is right`);
  }
  if (one.suspect !== job.suspect) {
    fail("wrongSuspect", `job ${job.id} came ${one.suspect ? "" : "not "}as a suspect`);
  }
  if (one.body !== job.body) fail("bodyChanged", `job ${job.id} has another body`);
}

/** Whether a short claim is told in time of the next job, which can be claimed at `nextAt`. */
export function checkNextDue(
  request: ClaimRequest,
  reply: ClaimReply,
  now: number,
  nextAt: number,
  fail: Fail,
): void {
  if (reply.deliveries.length >= request.max || reply.nextDueMs === undefined) return;
  if (reply.nextDueMs < 0 || now + reply.nextDueMs > nextAt) {
    fail(
      "wrongAnswer",
      `a claim was told that the next job is due in ${reply.nextDueMs} ms; it is in ${nextAt - now} ms`,
    );
  }
}
