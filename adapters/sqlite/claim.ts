import type { ClaimReply, ClaimRequest, Delivery } from "../../src/broker.ts";
import type { SqlRow } from "./driver.ts";
import { extendLease, findLease, forgetLeases, startLease, takeBackRunOut } from "./leases.ts";
import { shareOut } from "./levels.ts";
import { deliveryOf } from "./rows.ts";
import type { Tables } from "./statements.ts";

/** One claim moves about so many jobs at most (come due, taken back); more than the largest batch needs. */
const MOVES_PER_CLAIM = 1000;

/**
 * Claims, or answers again what was claimed under this lease. Belongs inside a transaction. `isSpent` says that the id was
 * answered with nothing before, and so must take nothing now.
 */
export function claimJobs(
  tables: Tables,
  request: ClaimRequest,
  now: number,
  leaseMs: number,
  isSpent: boolean,
): ClaimReply {
  const { sql, queue } = tables;
  const { leaseId, max } = request;
  const state = sql.queueState.get(queue) ?? {};
  const isPaused = state.paused === 1;
  const known = findLease(tables, leaseId);
  let deliveries: Delivery[] = [];
  if (known !== undefined) {
    if (!known.ended && known.held !== undefined) {
      extendLease(tables, leaseId, now + leaseMs);
      deliveries = deliveriesOf(sql.heldRows.all(JSON.stringify(known.held)), leaseId);
    }
  } else if (!isPaused && !isSpent) {
    takeBackRunOut(tables, now, MOVES_PER_CLAIM);
    moveDue(tables, now);
    const seqs = choose(tables, max, state);
    if (seqs.length > 0) {
      deliveries = deliveriesOf(sql.hold.all(JSON.stringify(seqs)), leaseId);
      startLease(tables, leaseId, seqs, now + leaseMs);
      forgetLeases(tables, now);
    }
  }
  const memo = request.recall === true && typeof state.memo === "string" ? state.memo : undefined;
  const nextDueMs = isPaused || deliveries.length >= max ? undefined : nextDue(tables, now);
  return { deliveries, nextDueMs, memo };
}

/** What came due joins the tail, by its due time. */
function moveDue({ sql, queue }: Tables, now: number): void {
  for (const row of sql.dueRows.all(queue, now, MOVES_PER_CLAIM)) sql.becomeReady.run(Number(row.seq));
}

/** The rows to be claimed, high level first, each level's in its order. */
function choose({ sql, queue }: Tables, max: number, state: SqlRow): number[] {
  const ready = [0, 1, 2].map((level) => sql.readyOf.all(queue, level, max));
  const there = ready.map((rows) => rows.length) as [number, number, number];
  const passed = { normal: Number(state.normal_passed), low: Number(state.low_passed) };
  const share = shareOut(max, there, passed);
  if (share.passed.normal !== passed.normal || share.passed.low !== passed.low) {
    sql.setPassed.run(share.passed.normal, share.passed.low, queue);
  }
  return ready.flatMap((rows, level) => rows.slice(0, share.take[level]).map((row) => Number(row.seq)));
}

/** `RETURNING` and `IN` promise no order, so it is made here. */
function deliveriesOf(rows: readonly SqlRow[], leaseId: string): Delivery[] {
  return [...rows]
    .sort((a, b) => Number(a.level) - Number(b.level) || Number(a.seq) - Number(b.seq))
    .map((row) => deliveryOf(row, leaseId));
}

function nextDue({ sql, queue }: Tables, now: number): number | undefined {
  if (sql.anyReady.get(queue) !== undefined) return 0;
  const due = sql.nextDue.get(queue)?.due_at;
  const end = sql.nextEnd.get(queue)?.until;
  const next = Math.min(Number(due ?? Infinity), Number(end ?? Infinity));
  return next === Infinity ? undefined : Math.max(0, next - now);
}
