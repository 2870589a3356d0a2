/**
 * Putting back dead letters by their ids, and saying which were none: for the HTTP app and the command.
 *
 * @module
 */
import type { BrokerQueue } from "../broker.ts";

/** How many are put back at the most when nothing says how many. */
export const MOST_REDRIVEN = 1_000_000;

/** What became of the ids. */
export interface Redriven {
  /** How many dead letters were put back; an id that was enqueued again after its dead letter may have several. */
  redriven: number;
  /** Those that are no dead letter's, in the order they were given. */
  readonly absent: string[];
}

/**
 * Puts back the dead letters with these ids, one by one: a broker answers only how many it put back, and it must be said which were not there.
 *
 * @param ids each counts once.
 * @param sums what is counted into, for a caller who tells it even where the broker fails in the middle.
 * @throws {BrokerError} when the broker fails; those before are put back.
 */
export async function redriveByIds(
  redrive: NonNullable<BrokerQueue["redrive"]>,
  ids: readonly string[],
  sums: Redriven = { redriven: 0, absent: [] },
): Promise<Redriven> {
  for (const id of new Set(ids)) {
    const count = await redrive({ ids: [id], limit: MOST_REDRIVEN });
    sums.redriven += count;
    if (count === 0) sums.absent.push(id);
  }
  return sums;
}
