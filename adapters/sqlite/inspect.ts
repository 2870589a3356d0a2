import type { JobState, PeekedJob, QueueSizes } from "../../src/broker.ts";
import type { SqlRow } from "./driver.ts";
import { heldRows } from "./leases.ts";
import { peekedOf } from "./rows.ts";
import type { Tables } from "./statements.ts";

/** How many jobs are where. A delayed job that is due counts as ready; a lease that ran out holds still. */
export function sizesOf({ sql, queue }: Tables, now: number): QueueSizes {
  const row = sql.sizes.get(now, queue) ?? {};
  const due = Number(row.due);
  return {
    ready: Number(row.ready) + due,
    delayed: Number(row.delayed) - due,
    held: Number(row.held),
    dead: Number(row.dead),
    paused: row.paused === 1,
  };
}

/** Up to `limit` jobs of a state, in the order in which they would be handed out. Changes nothing. */
export function peekJobs(
  tables: Tables,
  state: JobState,
  limit: number,
  withBodies: boolean,
  now: number,
): PeekedJob[] {
  const { sql } = tables;
  return rowsOf(tables, state, limit, now).map((row) =>
    peekedOf(row, withBodies ? sql.body.get(Number(row.seq))?.body : "", state),
  );
}

function rowsOf(tables: Tables, state: JobState, limit: number, now: number): readonly SqlRow[] {
  const { sql, queue } = tables;
  switch (state) {
    case "ready": {
      const rows: SqlRow[] = [];
      for (const level of [0, 1, 2]) {
        // Not spread into one push: there may be more rows than a call can have arguments.
        for (const row of sql.peekReady.all(queue, level, limit - rows.length)) rows.push(row);
        for (const row of sql.peekDue.all(queue, level, now, limit - rows.length)) rows.push(row);
      }
      return rows;
    }
    case "delayed":
      return sql.peekDelayed.all(queue, now, limit);
    case "held":
      return heldRows(tables)
        .sort((a, b) => Number(a.level) - Number(b.level) || Number(a.seq) - Number(b.seq))
        .slice(0, limit);
    case "dead":
      return sql.peekDead.all(queue, limit);
  }
}
