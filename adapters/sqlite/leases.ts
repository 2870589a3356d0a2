import type { RenewResult } from "../../src/broker.ts";
import type { SqlRow, SqlStatement } from "./driver.ts";
import type { Tables } from "./statements.ts";

/** How long an ended lease is remembered. */
export const REMEMBER_LEASE_MS = 60_000;
/** A claim forgets up to so many leases whose time is over: more than it makes, so they cannot pile up. */
const FORGET_PER_CLAIM = 8;

/**
 * A lease's row. While it lives, `until` is its deadline and `held` are the `seq`s of the deliveries not settled yet. Once
 * it ended, `until` says how long it is remembered, and `held` are the deliveries that were lost; `undefined` where
 * all are, as of a lease that was given up before its claim came.
 */
export interface LeaseRow {
  readonly n: number;
  readonly ended: boolean;
  readonly held: readonly number[] | undefined;
}

/** The row of a lease that was ever claimed under or given up, if it is remembered. */
export function findLease({ sql, queue }: Tables, id: string): LeaseRow | undefined {
  const row = sql.lease.get(queue, id);
  if (row === undefined) return undefined;
  return { n: Number(row.n), ended: row.ended === 1, held: seqsOf(row.held) };
}

export function startLease(
  { sql, queue }: Tables,
  id: string,
  seqs: readonly number[],
  deadline: number,
): void {
  sql.addLease.run(queue, id, 0, deadline, JSON.stringify(seqs));
}

/** Says what a lease still holds, after some of it was settled but not all. */
export function keepHeld({ sql }: Tables, n: number, held: readonly number[]): void {
  sql.setHeld.run(JSON.stringify(held), n);
}

/** Ends a lease; verdicts under the given deliveries will be `lost`, those for others `done`. */
export function endLease({ sql }: Tables, n: number, lost: readonly number[], now: number): void {
  sql.endLease.run(now + REMEMBER_LEASE_MS, JSON.stringify(lost), n);
}

export function extendLease({ sql, queue }: Tables, id: string, deadline: number): RenewResult {
  return sql.extendLease.get(deadline, queue, id) !== undefined ? "held" : "lost";
}

/** Gives back unstarted whatever a lease holds, and bars its id. */
export function abandonLease(tables: Tables, id: string, now: number): void {
  const lease = findLease(tables, id);
  if (lease === undefined) {
    tables.sql.addLease.run(tables.queue, id, 1, now + REMEMBER_LEASE_MS, null);
  } else if (!lease.ended && lease.held !== undefined) {
    for (const seq of lease.held) tables.sql.release.run(seq);
    endLease(tables, lease.n, lease.held, now);
  }
}

/** Ends leases that ran out, earliest first, until `most` jobs or `mostBytes` at least were taken back: they are suspects now. */
export function takeBackRunOut(tables: Tables, now: number, most: number, mostBytes: number): void {
  const { sql, queue } = tables;
  let moved = 0;
  let bytes = 0;
  for (const row of sql.runOut.all(queue, now, most)) {
    if (moved >= most || bytes >= mostBytes) return;
    const held = seqsOf(row.held) ?? [];
    for (const seq of held) bytes += Number(sql.takeBack.get(seq)?.bytes ?? 0);
    endLease(tables, Number(row.n), held, now);
    moved += held.length;
  }
}

export function forgetLeases({ sql, queue }: Tables, now: number): void {
  for (const row of sql.oldLeases.all(queue, now, FORGET_PER_CLAIM)) sql.forgetLease.run(Number(row.n));
}

/** The rows of some jobs, in the order of the list. */
export function jobRows({ sql }: Tables, seqs: readonly number[]): SqlRow[] {
  return rowsAt(sql.job, seqs);
}

/** The rows of all jobs held now, without their bodies. */
export function heldRows({ sql, queue }: Tables): SqlRow[] {
  const seqs = sql.heldLists.all(queue).flatMap((row) => seqsOf(row.held) ?? []);
  return rowsAt(sql.look, seqs);
}

function rowsAt(statement: SqlStatement, seqs: readonly number[]): SqlRow[] {
  return seqs.flatMap((seq): SqlRow[] => {
    const row = statement.get(seq);
    return row === undefined ? [] : [row];
  });
}

function seqsOf(held: unknown): readonly number[] | undefined {
  return typeof held === "string" ? (JSON.parse(held) as number[]) : undefined;
}
