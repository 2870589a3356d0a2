/**
 * What a world is checked for. Each kind of violation has a name, so that a world is only made smaller to one that breaks the same promise.
 *
 * @module
 */

/** The promises, by name. */
const PROMISES = {
  // The broker's.
  wrongAnswer: "a verb answers as the contract says",
  twoHolders: "a job never has two live holders by the broker's clock",
  deliveredAfterEnd: "a job that was acked or dead-lettered is never delivered again",
  wrongAttempt: "attempts are exact: one a delivery, taken back by a release",
  wrongSuspect: "a job is a suspect exactly when a holder of it vanished",
  wrongOrder: "within a level the oldest goes first, and what was given back before it",
  starved: "no level starves",
  stranded: "a claim that comes back short leaves nothing behind that could be claimed",
  lateFence: "a verdict under a lease that is over changes nothing",
  duplicate: "an id is accepted once within its window",
  bodyChanged: "a body arrives as it was enqueued",
  // The loop's.
  claimAfterStop: "nothing is claimed after a stop",
  startAfterStop: "nothing starts after a stop",
  startAfterLoss: "nothing starts whose lease is over",
  startedTwice: "a delivery starts once",
  startOrder: "deliveries start in the order in which they came",
  tooManyRunning: "no more handlers run than concurrency allows",
  overlappingClaims: "two claims at one queue by one worker never overlap",
  claimWithoutSlot: "nothing is claimed without a slot for it, but the one batch ahead",
  aheadInDrain: "a drain claims nothing ahead",
  tooManyHeld: "no more is held than the limits allow",
  unjustVerdict: "a verdict is what the handler's end says",
  twoVerdicts: "a delivery has one verdict",
  verdictAfterLoss: "no verdict is sent of a lease that was lost",
  racingRenewal: "a renewal under way and the settling of its lease never race",
  claimAfterRefusal: "a broker that refused is not claimed from again",
  lateAbort: "a handler is told before the broker's deadline that its lease is lost",
  lastChanceNotAlone: "a suspect on its last attempt runs with nothing else held",
  tookNeighbour: "a job that kills its worker takes no neighbour along",
  deadUnjustly: "a job is dead-lettered for a true reason",
  heldAfterEnd: "after a stop or a drain nothing is held, not even what handlers left behind still run",
  stopUnbounded: "a stop is bounded",
  startUnbounded: "a start is bounded",
  requestAfterEnd: "nothing is sent once a stop or a drain has answered",
  overBudget: "a drain keeps to its budget",
  wrongReport: "a drain's report is true",
  unhandledRejection: "no promise is left alone",
  threw: "nothing throws that should not",
  // The world's.
  lostJob: "every accepted job ends acked or dead-lettered",
  notAccepted: "an enqueue that was answered put its job into the queue",
  noProgress: "once nothing fails any more, all is done in bounded time",
  slowStart: "a job that comes while a worker is idle starts soon",
  heldAtEnd: "nothing is held at the end",
  livelock: "the world does not go round in a circle",
  notCalm: "where nothing fails, no lease is lost and no job runs again without cause",
} as const;

export type Promised = keyof typeof PROMISES;

export class Violation extends Error {
  override name = "Violation";
  readonly promised: Promised;
  /** The world's time. */
  readonly atMs: number;

  constructor(promised: Promised, atMs: number, what: string) {
    super(`${promised} (${PROMISES[promised]}), at ${atMs} ms: ${what}`);
    this.promised = promised;
    this.atMs = atMs;
  }
}

/** Reports a violation; the world goes on to its next event and ends there. */
export type Fail = (promised: Promised, what: string) => void;
