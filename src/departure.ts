/**
 * When verdicts that wait leave by a request of their own. Pure.
 *
 * @module
 */

const NEVER = Number.POSITIVE_INFINITY;
/** A time that has come on any clock, one that shows less than zero too. */
const AT_ONCE = Number.NEGATIVE_INFINITY;

export interface DepartureState {
  /** Whether the loop is neither stopping nor closed. */
  readonly isRunning: boolean;
  /** Whether jobs run or wait to: they will bring a request to ride on. */
  readonly isBusy: boolean;
  /** Whether a claim is under way. */
  readonly isClaiming: boolean;
  /** Whether they are to leave together with what is still to come. */
  readonly isTogether: boolean;
  /** Whether nothing is waited for any more. */
  readonly isFlushing: boolean;
  /** Whether last chances are in hand that cannot run before all else has left. */
  readonly holdsLastChances: boolean;
  /** Whether claims carry verdicts. */
  readonly exchanges: boolean;
  /** Whether the last claim brought all it asked for. */
  readonly wasLastFull: boolean;
  /** Since when the oldest waits, and by when it leaves where a claim is probably answered before; on the platform's clock. */
  readonly oldestSince: number | undefined;
  readonly soonAt: number;
  readonly settleWithinMs: number;
}

/** At once when no work is left that would bring a request to ride on. */
export function departureAt(state: DepartureState): number {
  const { isBusy, isClaiming, oldestSince } = state;
  if ((isBusy || isClaiming) && !state.isFlushing && state.isTogether) return NEVER;
  if (!state.isRunning || oldestSince === undefined) return AT_ONCE;
  if (state.holdsLastChances) return AT_ONCE;
  if (!isBusy && !isClaiming) return AT_ONCE;
  // A claim under way brings work, and so a request to ride on: where it may wait at the engine, only right after a full one is that to be expected, and soon.
  if (!isBusy && !state.exchanges) return state.wasLastFull ? state.soonAt : AT_ONCE;
  return oldestSince + state.settleWithinMs;
}
