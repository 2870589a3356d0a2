/**
 * What is known of one queue on one machine, and what is asked of each claim and each verdict.
 *
 * @module
 */
import type { ClaimReply, ClaimRequest, Verdict } from "../../src/broker.ts";
import type { QueueModel } from "./model.ts";
import type { QueuePlan } from "./plan.ts";
import type { Run, RunRecord } from "./run_record.ts";
import type { Fail } from "./violation.ts";

/** One delivery as the machine came to know of it. */
export interface Received {
  readonly order: number;
  /** When it came: after how many starts and claims' answers. */
  readonly at: number;
  readonly attempt: number;
  run: RunRecord | undefined;
  /** The handler's end was told, or it needs none. */
  verdict: Verdict["kind"] | undefined;
  lost: boolean;
  /** Its handler is done, or it needs none. */
  decided: boolean;
  /** Neither started nor lost nor decided on. */
  waits: boolean;
}

/** What is known of one queue on one machine. */
export interface QueueWatch {
  readonly plan: QueuePlan;
  readonly model: QueueModel;
  readonly received: Map<string, Received>;
  /** Claims sent and not answered: by lease, until when they may be waited for, on the machine's own clock, and how often they were sent. */
  readonly claims: Map<string, { until: number; sent: number }>;
  /** Renewals sent and not answered, by lease: until when they may be waited for. */
  readonly renewals: Map<string, number>;
  refused: boolean;
  /** Replies that arrived and were not taken yet, by lease. */
  readonly replies: Map<string, ClaimReply>;
  /** Deliveries received that wait. */
  waiting: number;
  /** Handlers running, left ones not counted. */
  running: Set<Run>;
  lastAsked: number;
  askedBefore: number;
  lastGot: number;
  lastStarted: number;
  order: number;
}

/** Names a delivery. */
export const key = (leaseId: string, jobId: string) => `${leaseId} ${jobId}`;

/** Whether a claim may go out: with a slot free, or for the one batch ahead. */
export function checkRoom(queue: QueueWatch, request: ClaimRequest, isDrain: boolean, fail: Fail): void {
  const { plan, waiting, running, lastAsked, lastGot } = queue;
  if (running.size < plan.concurrency && waiting === 0) return;
  const where = `asked for ${request.max} with ${running.size} running and ${waiting} waiting`;
  if (isDrain) return fail("aheadInDrain", where);
  if (!plan.claimAhead || lastGot < lastAsked) return fail("claimWithoutSlot", where);
  // One batch ahead at most: what waits is what is left of the last.
  if (waiting >= Math.max(lastAsked, plan.batchSize)) fail("claimWithoutSlot", where);
}

/** Whether no more is held, and not done, than the limits allow. */
export function checkHeld(queue: QueueWatch, maxInFlight: number, fail: Fail): void {
  const { plan } = queue;
  const perClaim =
    plan.prefetch === "auto" ? 16 * plan.concurrency : Math.max(plan.prefetch, plan.concurrency);
  const bound = 2 * perClaim + plan.concurrency * plan.batchSize;
  let held = 0;
  for (const one of queue.received.values())
    if (!one.lost && !one.decided && one.verdict === undefined) held += 1;
  if (held > bound || (maxInFlight > 0 && held > maxInFlight)) {
    fail("tooManyHeld", `${held} jobs are held; ${Math.min(bound, maxInFlight || bound)} is the most`);
  }
}

/** Whether a verdict is what the handler's end says. */
export function checkJust(
  queue: QueueWatch,
  known: Received,
  verdict: Verdict,
  what: string,
  fail: Fail,
): void {
  const { run, attempt } = known;
  const { maxAttempts } = queue.plan;
  const why = run === undefined ? "it never started" : run.describe();
  const unjust = () => fail("unjustVerdict", `sent ${what}; ${why}`);
  switch (verdict.kind) {
    case "ack":
      if (run?.outcome !== "returned") unjust();
      break;
    case "release":
      if (run !== undefined && !run.interrupted) unjust();
      break;
    case "retry":
      if (run === undefined || !run.failed || attempt >= maxAttempts) unjust();
      break;
    case "dead":
      if (run === undefined ? attempt <= maxAttempts : !run.mayDie(attempt, maxAttempts)) unjust();
      break;
  }
}
