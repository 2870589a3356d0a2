/**
 * One queue loop's last chances: suspects on their last attempt, each of which has to run with nothing held beside it. What cannot run at once goes back
 * and is claimed again alone; until it has left, nothing starts in the whole worker, since a job that kills it would use the last chance up.
 *
 * @module
 */
import type { HeldDelivery } from "./held.ts";
import type { SoloGate, SoloMember } from "./solo.ts";

/** A loop that has the worker to itself gives it back after so many jobs that were not what it wanted to run alone. */
const MOST_OTHERS_ALONE = 16;

export class LastChances {
  readonly #gate: SoloGate;
  readonly #member: SoloMember;
  /** Given back, to be claimed again alone. */
  readonly #wanted = new Set<string>();
  /** In hand, not running. */
  readonly #inHand = new Set<HeldDelivery>();
  #kept: HeldDelivery | undefined;
  #othersAlone = 0;

  constructor(gate: SoloGate, member: SoloMember) {
    this.#gate = gate;
    this.#member = member;
  }

  /** Whether some were given back and are waited for. */
  get wanted(): boolean {
    return this.#wanted.size > 0;
  }

  /** Whether some are in hand that do not run. */
  get inHand(): boolean {
    return this.#inHand.size > 0;
  }

  /** The one that is to run as soon as all else has left. */
  get kept(): HeldDelivery | undefined {
    return this.#kept;
  }

  /** They are given back, and claimed again alone. */
  giveBack(lastChances: readonly HeldDelivery[]): void {
    this.#othersAlone = 0;
    for (const held of lastChances) {
      // Its lease may have been found to be over meanwhile.
      if (held.over) continue;
      this.#wanted.add(held.delivery.id);
      this.#hold(held);
    }
    this.#gate.want(this.#member);
  }

  /** This one stays in hand until all else has left. */
  keep(held: HeldDelivery): void {
    this.#kept = held;
    this.#hold(held);
    this.#gate.want(this.#member);
  }

  /** The one kept starts now, alone; once it runs, {@linkcode LastChances.over} is to be called. */
  starts(held: HeldDelivery): void {
    this.#othersAlone = 0;
    this.#kept = undefined;
    this.#wanted.delete(held.delivery.id);
  }

  /** The one kept is given up. */
  takeKept(): HeldDelivery[] {
    const kept = this.#kept;
    this.#kept = undefined;
    return kept === undefined ? [] : [kept];
  }

  /** It is out of our hands, or runs. */
  over(held: HeldDelivery): void {
    if (this.#kept === held) this.#kept = undefined;
    if (this.#inHand.delete(held) && this.#inHand.size === 0) this.#gate.unblock(this.#member);
  }

  /** Another job came instead. It comes soon, unless another worker has it: answers whether to wait no longer. */
  otherCame(): boolean {
    this.#othersAlone += 1;
    return this.#othersAlone >= MOST_OTHERS_ALONE;
  }

  /** They are waited for no longer. */
  forget(): void {
    this.#wanted.clear();
    this.#othersAlone = 0;
  }

  #hold(held: HeldDelivery): void {
    this.#inHand.add(held);
    this.#gate.block(this.#member);
  }
}
