/**
 * When to send the next claim while the last one's jobs still run, so that its answer is there when they end. Pure.
 *
 * @module
 */

/** A round trip shorter than this share of a batch's work is not worth hiding: jobs taken early wait in this worker while another is free. */
const WORTH_HIDING = 1 / 50;

export interface AheadState {
  /** How many the last claim asked for, and whether it came back full. */
  readonly asked: number;
  readonly full: boolean;
  /** Jobs held and not started. */
  readonly waiting: number;
  readonly running: number;
  readonly slots: number;
  /** How long the jobs running have been on the way altogether, in milliseconds. */
  readonly runningForMs: number;
  readonly averageMs: number | undefined;
  readonly roundTripMs: number | undefined;
}

/**
 * In how many milliseconds the next claim should be sent: 0 for now, `undefined` for not before a slot is free.
 *
 * Never after a short claim (the queue is probably empty), nor after a claim for a single job (whose owner wants no job held beside another), nor while a
 * whole batch waits already.
 */
export function claimAheadInMs(state: AheadState): number | undefined {
  const { averageMs, roundTripMs } = state;
  if (!state.full || state.asked < 2 || averageMs === undefined || roundTripMs === undefined)
    return undefined;
  // One batch ahead, however long the jobs that run take: else one that hangs would have its worker take the whole queue, batch by batch.
  if (state.waiting >= state.asked) return undefined;
  if (roundTripMs < (averageMs * state.asked * WORTH_HIDING) / state.slots) return undefined;
  const work = (state.waiting + state.running) * averageMs - state.runningForMs;
  const leftMs = Math.max(0, work) / state.slots;
  // A quarter more than the round trip, since it varies. In whole milliseconds: what is left is an estimate that shrinks as it is looked at, and
  // one looked at again and again within one millisecond would be so without end.
  return Math.max(0, Math.ceil(leftMs - roundTripMs * 1.25));
}
