import { MAX_ERROR_LENGTH, type Settlement, type SettleResult, type Verdict } from "../../src/broker.ts";
import { dueTime } from "./clock.ts";
import { endLease, findLease, keepHeld } from "./leases.ts";
import type { Tables } from "./statements.ts";

/** A lease while the settlements of a request are worked through. */
interface LeaseAtWork {
  readonly n: number;
  readonly ended: boolean;
  /** Live: what it holds still. Ended: what was lost; `undefined` for all of it. */
  readonly held: Set<number> | undefined;
  touched: boolean;
}

/** What the settlements of a request did. */
export interface SettleOutcome {
  readonly results: readonly SettleResult[];
  /** Whether jobs became ready. */
  readonly madeReady: boolean;
}

/** Carries out each verdict whose delivery is held, and remembers that it did. Belongs inside a transaction. */
export function settleAll(tables: Tables, settlements: readonly Settlement[], now: number): SettleOutcome {
  const { sql } = tables;
  const leases = new Map<string, LeaseAtWork | undefined>();
  let madeReady = false;

  const results = settlements.map(({ delivery, verdict }): SettleResult => {
    const lease = leases.has(delivery.leaseId)
      ? leases.get(delivery.leaseId)
      : open(tables, delivery.leaseId, leases);
    if (lease === undefined) return "lost";
    const seq = Number(delivery.token);
    if (lease.ended) return lease.held === undefined || lease.held.has(seq) ? "lost" : "done";
    // Not held, but the lease lives: it was settled before.
    if (lease.held?.delete(seq) !== true) return "done";
    lease.touched = true;
    switch (verdict.kind) {
      case "ack":
        sql.remove.run(seq);
        break;
      case "release":
        sql.release.run(seq);
        madeReady = true;
        break;
      default:
        if (move(tables, seq, verdict, now)) madeReady = true;
    }
    return "done";
  });

  for (const lease of leases.values()) {
    if (lease?.held === undefined || !lease.touched) continue;
    if (lease.held.size === 0) endLease(tables, lease.n, [], now);
    else keepHeld(tables, lease.n, [...lease.held]);
  }
  return { results, madeReady };
}

function open(
  tables: Tables,
  id: string,
  leases: Map<string, LeaseAtWork | undefined>,
): LeaseAtWork | undefined {
  const row = findLease(tables, id);
  const lease = row && { n: row.n, ended: row.ended, held: row.held && new Set(row.held), touched: false };
  leases.set(id, lease);
  return lease;
}

/** Sends one job to a tail: the ready, the delayed, or the dead. Answers whether it is ready now. */
function move(
  { sql }: Tables,
  seq: number,
  verdict: Extract<Verdict, { kind: "retry" | "dead" }>,
  now: number,
): boolean {
  const error = verdict.error?.slice(0, MAX_ERROR_LENGTH) ?? null;
  if (verdict.kind === "dead") sql.bury.run(error, now, verdict.attempts ?? null, seq);
  else if (verdict.delayMs > 0) sql.retryLater.run(error, dueTime(now, verdict.delayMs), seq);
  else sql.retryNow.run(error, seq);
  return verdict.kind === "retry" && !(verdict.delayMs > 0);
}
