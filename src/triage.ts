/**
 * Sorts what a claim brought. Pure.
 *
 * @module
 */
import type { Delivery, Verdict } from "./broker.ts";
import { attemptsUsedUp } from "./verdict.ts";

export type Fate =
  /** To be run. */
  | { readonly kind: "run" }
  /** To be run with nothing beside it: a suspect on its last attempt. */
  | { readonly kind: "runAlone" }
  /** Not to be run at all. */
  | { readonly kind: "settle"; readonly verdict: Verdict };

const RUN: Fate = Object.freeze({ kind: "run" });
const RUN_ALONE: Fate = Object.freeze({ kind: "runAlone" });

/** What is to be done with a delivery. */
export function fateOf(delivery: Delivery, maxAttempts: number): Fate {
  if (delivery.broken !== undefined)
    return { kind: "settle", verdict: { kind: "dead", error: delivery.broken } };
  const usedUp = attemptsUsedUp(delivery, maxAttempts);
  if (usedUp !== undefined) return { kind: "settle", verdict: usedUp };
  return delivery.suspect && delivery.attempt === maxAttempts ? RUN_ALONE : RUN;
}
