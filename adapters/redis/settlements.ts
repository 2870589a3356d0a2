/**
 * Settlements as the script takes them, and its answer as the port gives it. Pure.
 *
 * @module
 */
import { MAX_ERROR_LENGTH, type Settlement, type SettleResult } from "../../src/broker.ts";

/** Those of the lease that was claimed last: mostly the next one is as large, and has the same. */
let tokens: readonly string[] = [];

/** The tokens of a lease's deliveries: each one's slot in the lease, from 1, and how many slots the lease has. */
export function tokensOf(slots: number): readonly string[] {
  if (tokens.length !== slots) tokens = Array.from({ length: slots }, (_, at) => `${at + 1}/${slots}`);
  return tokens;
}

interface Group {
  readonly leaseId: string;
  /** Where in the request its settlements stand. */
  readonly positions: number[];
  /** Whether it is every delivery of the lease, each acked. */
  whole: boolean;
}

export interface SettlementPlan {
  /** How many leases, and each, as the script's arguments. */
  readonly args: string[];
  /** Turns the script's letters into results in the request's order; `undefined` when they do not fit. */
  results(letters: unknown): SettleResult[] | undefined;
}

/**
 * Groups settlements by lease: a lease whose every delivery is acked goes as one word, however large it is. What is not acked
 * takes effect in the request's order, across leases too: jobs that are retried join the tail one after the other.
 */
export function planSettlements(settlements: readonly Settlement[]): SettlementPlan {
  const groups = inGroups(settlements);
  const args = [String(groups.length)];
  for (const group of groups) {
    const { leaseId, positions } = group;
    const all = wholeLease(settlements, positions);
    group.whole = all > 0;
    args.push(leaseId, String(all), all > 0 ? "0" : String(positions.length));
    if (all === 0) for (const at of positions) pushVerdict(args, settlements[at] as Settlement);
  }
  return { args, results: (letters) => spread(groups, settlements, letters) };
}

/** One group for a lease that is only acked, since acks have no order; of another lease, one for each unbroken run. */
function inGroups(settlements: readonly Settlement[]): Group[] {
  let ordered: Set<string> | undefined;
  for (const { delivery, verdict } of settlements) {
    if (verdict.kind === "ack") continue;
    ordered ??= new Set();
    ordered.add(delivery.leaseId);
  }
  const groups: Group[] = [];
  const acked = new Map<string, Group>();
  let run: Group | undefined;
  let group: Group | undefined;
  for (let at = 0; at < settlements.length; at++) {
    const { leaseId } = (settlements[at] as Settlement).delivery;
    // Mostly all are of one lease.
    if (group?.leaseId !== leaseId) {
      const inOrder = ordered?.has(leaseId) === true;
      group = inOrder ? run : acked.get(leaseId);
      if (group?.leaseId !== leaseId) {
        group = { leaseId, positions: [], whole: false };
        groups.push(group);
        if (inOrder) run = group;
        else acked.set(leaseId, group);
      }
    }
    group.positions.push(at);
  }
  return groups;
}

/** The number its token begins with. */
function slotOf({ delivery }: Settlement): number {
  const { token } = delivery;
  let slot = 0;
  for (let at = 0; at < token.length; at++) {
    const digit = token.charCodeAt(at) - 48;
    if (!(digit >= 0 && digit <= 9)) break;
    slot = slot * 10 + digit;
  }
  return slot;
}

/** How many deliveries the lease has, when these acks are one for each of them; else 0. */
function wholeLease(settlements: readonly Settlement[], positions: readonly number[]): number {
  const token = (settlements[positions[0] as number] as Settlement).delivery.token;
  const slots = Number(token.slice(token.indexOf("/") + 1));
  if (slots !== positions.length) return 0;
  const seen = new Uint8Array(slots + 1);
  for (const at of positions) {
    const settlement = settlements[at] as Settlement;
    const slot = slotOf(settlement);
    if (settlement.verdict.kind !== "ack" || slot < 1 || slot > slots || seen[slot] === 1) return 0;
    seen[slot] = 1;
  }
  return slots;
}

function pushVerdict(args: string[], settlement: Settlement): void {
  const slot = slotOf(settlement);
  const { verdict, delivery } = settlement;
  switch (verdict.kind) {
    case "ack":
      args.push(`${slot}a`);
      break;
    case "release":
      args.push(`${slot}g`);
      break;
    case "retry":
      args.push(`${slot}r${Math.max(0, Math.ceil(verdict.delayMs))}`);
      break;
    case "dead":
      args.push(
        `${slot}d${verdict.attempts ?? ""}`,
        JSON.stringify(verdict.error.slice(0, MAX_ERROR_LENGTH).toWellFormed()),
        delivery.id,
      );
      break;
  }
}

function spread(
  groups: readonly Group[],
  settlements: readonly Settlement[],
  letters: unknown,
): SettleResult[] | undefined {
  if (!Array.isArray(letters) || letters.length !== groups.length) return undefined;
  const results = new Array<SettleResult>(settlements.length);
  for (let g = 0; g < groups.length; g++) {
    const { positions, whole } = groups[g] as Group;
    const word: unknown = letters[g];
    if (typeof word !== "string") return undefined;
    const same = word === "D" || word === "L";
    if (!same && word.length !== positions.length) return undefined;
    for (let at = 0; at < positions.length; at++) {
      const position = positions[at] as number;
      // Of a lease that is settled as one the script answers slot by slot where it must.
      const letter = same ? word : word[whole ? slotOf(settlements[position] as Settlement) - 1 : at];
      results[position] = letter === "D" || letter === "d" ? "done" : "lost";
    }
  }
  return results;
}
