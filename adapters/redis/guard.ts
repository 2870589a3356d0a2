/**
 * The guard against a Redis that loses jobs: what it reads, and what it makes of it. Pure.
 *
 * @module
 */

/** What INFO tells; `undefined` where it did not. */
export interface Signs {
  readonly policy: string | undefined;
  /** Keys thrown away since the server started. */
  readonly evicted: number | undefined;
}

/** Reads the sections `stats` and `memory` of INFO. */
export function readSigns(stats: string, memory: string): Signs {
  const evicted = /^evicted_keys:(\d+)/m.exec(stats)?.[1];
  return {
    policy: /^maxmemory_policy:(\S+)/m.exec(memory)?.[1],
    evicted: evicted === undefined ? undefined : Number(evicted),
  };
}

/**
 * Why a queue must not be served, or `undefined` when nothing speaks against it.
 *
 * @param evictedBefore how many keys had been thrown away when the queue was opened.
 */
export function objection(signs: Signs, evictedBefore: number): string | undefined {
  if (signs.policy !== undefined && signs.policy !== "noeviction") {
    return (
      `Redis's maxmemory-policy is ${signs.policy}, so it may throw jobs away when it is full; ` +
      "set maxmemory-policy to noeviction"
    );
  }
  if (signs.evicted !== undefined && signs.evicted > evictedBefore) {
    return (
      `Redis has thrown ${signs.evicted - evictedBefore} keys away (evicted_keys) since the queue was opened, jobs may be among them; ` +
      "set maxmemory-policy to noeviction, give it more memory, look for what is missing, and restart"
    );
  }
  return undefined;
}

/**
 * What the section `persistence` of INFO gives to warn of: `undefined` where the append-only file is on, and where nothing is said of it.
 *
 * A snapshot brings the queue's mark back, but not the jobs that are younger: nothing notices them missing.
 */
export function lossAtRestart(persistence: string): string | undefined {
  if (!/^aof_enabled:0/m.test(persistence)) return undefined;
  return (
    "keeps no append-only file, so a crash or a restart loses the newest jobs, and nothing will tell; " +
    "set appendonly to yes, unless it keeps its data in another way"
  );
}

/** The count later ones are compared with: a restarted server counts from 0 again. */
export function baseline(before: number, signs: Signs): number {
  return Math.min(before, signs.evicted ?? before);
}

/** Said when the generation that was seen is not there any more. */
export const VANISHED =
  "the queue's keys vanished or were replaced (a flush, an eviction, a restart without persistence): jobs may be lost; " +
  "look for the cause, then restart to go on with what is there";
