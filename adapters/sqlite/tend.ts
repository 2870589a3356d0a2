import type { SqlRow } from "./driver.ts";
import type { Tables } from "./statements.ts";

/** Where bodies are large, a slice of a `clear` or `redrive` is of fewer jobs: it ends with the one that makes it so many bytes. */
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

/** Just below the last `seq` given: what is at or below it may go before a line is drawn, and no `seq` is given twice for it. */
export function belowLast({ sql }: Tables): number {
  return Number(sql.lastSeq.get()?.seq ?? 0) - 1;
}

/**
 * Removes a slice of up to `rows` jobs of some states below the line, as things were at `startedAt`; answers how many, 0 when all
 * are gone. Belongs inside a transaction.
 */
export function clearSlice(
  { sql, queue }: Tables,
  states: ReadonlySet<ClearableState>,
  line: number,
  startedAt: number,
  rows: number,
): number {
  let cleared = 0;
  // What is due goes first, before claims of others can move it to the tail of the ready ones, beyond the line.
  if (states.has("ready")) {
    cleared += inSlice(sql.dueUpTo.all(queue, startedAt, line, rows), sql.clear);
    if (cleared === 0) cleared += inSlice(sql.readyUpTo.all(queue, line, rows), sql.clear);
  }
  if (cleared === 0 && states.has("delayed")) {
    cleared += inSlice(sql.delayedUpTo.all(queue, startedAt, line, rows), sql.clear);
  }
  if (cleared === 0 && states.has("dead")) {
    cleared += inSlice(sql.deadUpTo.all(queue, line, rows), sql.clear);
  }
  return cleared;
}

/**
 * Makes a slice of the dead letters below the line ready again, oldest first, up to `rows`; answers how many, 0 when none is
 * left. Belongs inside a transaction.
 */
export function redriveSlice(
  { sql, queue }: Tables,
  ids: readonly string[] | undefined,
  line: number,
  rows: number,
): number {
  const found =
    ids === undefined
      ? sql.deadUpTo.all(queue, line, rows)
      : sql.deadNamed.all(queue, line, JSON.stringify(ids), rows);
  return inSlice(found, sql.revive);
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
