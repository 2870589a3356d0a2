import type { SqlRow } from "./driver.ts";
import type { Tables } from "./statements.ts";

/** A slice of a `clear` or `redrive` is a transaction of about so much at most: no other verb, in whichever process, waits for long. */
const ROWS_PER_SLICE = 1000;
const BYTES_PER_SLICE = 4 * 1024 * 1024;

export type ClearableState = "ready" | "delayed" | "dead";

/**
 * Draws the line between the jobs that are there and those to come: answers a `seq` that is above all given so far, and at or
 * below which none will ever be given. A row that is no job's (of queue 0) stays there, so that the jobs before it may go and
 * their `seq`s still not be given again. Belongs inside a transaction.
 */
export function drawLine({ sql }: Tables): number {
  return Number((sql.moveLine.get() ?? sql.addLine.get())?.seq);
}

/**
 * Removes a slice of the jobs of some states below the line, as things were at `startedAt`; answers how many, 0 when all are
 * gone. Belongs inside a transaction.
 */
export function clearSlice(
  { sql, queue }: Tables,
  states: ReadonlySet<ClearableState>,
  line: number,
  startedAt: number,
): number {
  let cleared = 0;
  // What is due goes first, before claims of others can move it to the tail of the ready ones, beyond the line.
  if (states.has("ready")) {
    cleared += inSlice(sql.dueUpTo.all(queue, startedAt, line, ROWS_PER_SLICE), sql.clear);
    if (cleared === 0) cleared += inSlice(sql.readyUpTo.all(queue, line, ROWS_PER_SLICE), sql.clear);
  }
  if (cleared === 0 && states.has("delayed")) {
    cleared += inSlice(sql.delayedUpTo.all(queue, startedAt, line, ROWS_PER_SLICE), sql.clear);
  }
  if (cleared === 0 && states.has("dead")) {
    cleared += inSlice(sql.deadUpTo.all(queue, line, ROWS_PER_SLICE), sql.clear);
  }
  return cleared;
}

/**
 * Makes a slice of the dead letters below the line ready again, oldest first, at most `limit`; answers how many, 0 when none is
 * left. Belongs inside a transaction.
 */
export function redriveSlice(
  { sql, queue }: Tables,
  ids: readonly string[] | undefined,
  line: number,
  limit: number,
): number {
  const most = Math.min(limit, ROWS_PER_SLICE);
  const rows =
    ids === undefined
      ? sql.deadUpTo.all(queue, line, most)
      : sql.deadNamed.all(queue, line, JSON.stringify(ids), most);
  return inSlice(rows, sql.revive);
}

/** Does something to rows, each answering its bytes, until the slice is full; answers to how many. */
function inSlice(rows: readonly SqlRow[], statement: { get(seq: number): SqlRow | undefined }): number {
  let bytes = 0;
  for (const [i, row] of rows.entries()) {
    bytes += Number(statement.get(Number(row.seq))?.bytes ?? 0);
    if (bytes >= BYTES_PER_SLICE) return i + 1;
  }
  return rows.length;
}
