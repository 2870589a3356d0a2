import type { ClaimReply, ClaimRequest, Delivery } from "../../src/broker.ts";
import type { SqlRow } from "./driver.ts";
import { extendLease, findLease, forgetLeases, jobRows, startLease, takeBackRunOut } from "./leases.ts";
import { shareWithin } from "./levels.ts";
import { deliveryOf } from "./rows.ts";
import type { Tables } from "./statements.ts";

/** One claim moves about so many jobs at most (come due, taken back); more than the largest batch needs. */
const MOVES_PER_CLAIM = 1000;
/**
 * The most bytes of bodies that a claim hands out, takes back, or moves as come due; but one job always goes. They are all in memory
 * at once, more than once over, and a Durable Object has 128 MB. A claim cut short says by `nextDueMs` 0 that there is more.
 */
const BYTES_PER_CLAIM = 16 * 1024 * 1024;
/** So many bodies are measured first, and twice as many each time after: where they are large, few are for nothing. */
const FIRST_MEASURED = 16;

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
    takeBackRunOut(tables, now, MOVES_PER_CLAIM, BYTES_PER_CLAIM);
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
  let bytes = 0;
  for (const row of sql.dueRows.all(queue, now, MOVES_PER_CLAIM)) {
    bytes += Number(sql.becomeReady.get(Number(row.seq))?.bytes ?? 0);
    if (bytes >= BYTES_PER_CLAIM) return;
  }
}

/** Takes the first jobs of each level, as many as its share; high level first, each level's in its order. */
function take(tables: Tables, max: number, state: SqlRow): SqlRow[] {
  const { sql, queue } = tables;
  // One job always goes, however large: then none is measured.
  const firsts = (level: number) =>
    max === 1 ? sql.firstReady.all(queue, level, 1) : firstOf(tables, level, max);
  const ready = [firsts(0), firsts(1), firsts(2)] as const;
  const passed = { normal: Number(state.normal_passed), low: Number(state.low_passed) };
  const share = shareWithin(
    max,
    BYTES_PER_CLAIM,
    [ready[0].map(bytesOf), ready[1].map(bytesOf), ready[2].map(bytesOf)],
    passed,
  );
  if (share.passed.normal !== passed.normal || share.passed.low !== passed.low) {
    sql.setPassed.run(share.passed.normal, share.passed.low, queue);
  }
  return ready.flatMap((rows, level) => {
    const last = rows[(share.take[level] ?? 0) - 1]?.seq;
    return last === undefined ? [] : inOrder(sql.hold.all(queue, level, Number(last)));
  });
}

/** The first jobs of a level, each with its bytes: up to `max`, fewer where these are more than a claim hands out. */
function firstOf({ sql, queue }: Tables, level: number, max: number): SqlRow[] {
  const found: SqlRow[] = [];
  let bytes = 0;
  let after = Number.MIN_SAFE_INTEGER;
  for (let most = FIRST_MEASURED; found.length < max && bytes <= BYTES_PER_CLAIM; most *= 2) {
    const wanted = Math.min(most, max - found.length);
    const rows = sql.readyOf.all(queue, level, after, wanted);
    for (const row of rows) {
      found.push(row);
      bytes += bytesOf(row);
      after = Number(row.seq);
    }
    if (rows.length < wanted) break;
  }
  return found;
}

function bytesOf(row: SqlRow): number {
  return Number(row.bytes ?? 0);
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
