import type { ClaimReply, ClaimRequest, Delivery } from "../../src/broker.ts";
import type { SqlRow } from "./driver.ts";
import { extendLease, findLease, forgetLeases, jobRows, startLease, takeBackRunOut } from "./leases.ts";
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
      deliveries = jobRows(tables, known.held).map((row) => deliveryOf(row, leaseId));
    }
  } else if (!isPaused && !isSpent) {
    takeBackRunOut(tables, now, MOVES_PER_CLAIM);
    moveDue(tables, now);
    const rows = take(tables, max, state);
    if (rows.length > 0) {
      deliveries = rows.map((row) => deliveryOf(row, leaseId));
      startLease(
        tables,
        leaseId,
        rows.map((row) => Number(row.seq)),
        now + leaseMs,
      );
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

/** Takes the first jobs of each level, as many as its share; high level first, each level's in its order. */
function take({ sql, queue }: Tables, max: number, state: SqlRow): SqlRow[] {
  const ready = [0, 1, 2].map((level) => sql.readyOf.all(queue, level, max));
  const there = ready.map((rows) => rows.length) as [number, number, number];
  const passed = { normal: Number(state.normal_passed), low: Number(state.low_passed) };
  const share = shareOut(max, there, passed);
  if (share.passed.normal !== passed.normal || share.passed.low !== passed.low) {
    sql.setPassed.run(share.passed.normal, share.passed.low, queue);
  }
  return ready.flatMap((rows, level) => {
    const last = rows[(share.take[level] ?? 0) - 1]?.seq;
    return last === undefined ? [] : inOrder(sql.hold.all(queue, level, Number(last)));
  });
}

/** A `RETURNING` promises no order. */
function inOrder(rows: readonly SqlRow[]): readonly SqlRow[] {
  return [...rows].sort((a, b) => Number(a.seq) - Number(b.seq));
}

function nextDue({ sql, queue }: Tables, now: number): number | undefined {
  if (sql.anyReady.get(queue) !== undefined) return 0;
  const due = sql.nextDue.get(queue)?.due_at;
  const end = sql.nextEnd.get(queue)?.until;
  const next = Math.min(Number(due ?? Infinity), Number(end ?? Infinity));
  return next === Infinity ? undefined : Math.max(0, next - now);
}
