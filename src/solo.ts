/**
 * Last chances alone. A suspect on its last attempt may be the job that kills its workers, so it runs with nothing held beside it, in no queue of
 * the worker: if it kills this one too, it takes no neighbour along.
 *
 * @module
 */

/** One queue loop, as the gate sees it. */
export interface SoloMember {
  /** Whether it holds nothing: no job running, waiting or unsettled, no claim under way. */
  quiet(): boolean;
  /** Whether it has nothing in hand; a claim may be under way. */
  emptyHanded(): boolean;
  /** Looks again at what it may do. */
  wake(): void;
}

/** Lets one queue loop at a time have the whole worker. */
export class SoloGate {
  readonly #members = new Set<SoloMember>();
  readonly #wanting: SoloMember[] = [];
  readonly #blocking = new Set<SoloMember>();

  join(member: SoloMember): void {
    this.#members.add(member);
  }

  leave(member: SoloMember): void {
    this.#members.delete(member);
    this.unblock(member);
    this.#forget(member);
  }

  /** Whether somebody has or wants the worker alone. */
  get closed(): boolean {
    return this.#wanting.length > 0;
  }

  /** Whether this member has, or is next to have, the worker alone. */
  owns(member: SoloMember): boolean {
    return this.#wanting[0] === member;
  }

  /** Whether all members but this one are quiet. */
  othersQuiet(member: SoloMember): boolean {
    for (const other of this.#members) {
      if (other !== member && !other.quiet()) return false;
    }
    return true;
  }

  /** Whether some member has a last chance in hand that does not run: nothing may start beside it. */
  get blocked(): boolean {
    return this.#blocking.size > 0;
  }

  /** This member has a last chance in hand that does not run. */
  block(member: SoloMember): void {
    this.#blocking.add(member);
  }

  /** This member has none any more: what others held back may start. */
  unblock(member: SoloMember): void {
    if (!this.#blocking.delete(member) || this.blocked) return;
    for (const other of this.#members) if (other !== member) other.wake();
  }

  /** Whether all members but this one have nothing in hand. */
  othersEmptyHanded(member: SoloMember): boolean {
    for (const other of this.#members) {
      if (other !== member && !other.emptyHanded()) return false;
    }
    return true;
  }

  /** Whether some other member than this one has a last chance in hand that does not run. */
  blockedFor(member: SoloMember): boolean {
    return this.blocked && !this.#blocking.has(member);
  }

  /** Asks for the worker; from now on the others claim nothing. Those that are not quiet look again: one may have a claim waiting at the engine. */
  want(member: SoloMember): void {
    if (this.#wanting.includes(member)) return;
    this.#wanting.push(member);
    for (const other of this.#members) {
      if (other !== member && !other.quiet()) other.wake();
    }
  }

  /** Gives the worker back. */
  done(member: SoloMember): void {
    if (!this.#forget(member)) return;
    for (const other of this.#members) {
      if (other !== member) other.wake();
    }
  }

  /** A member's state changed; whoever waits for quiet looks again. */
  changed(by: SoloMember): void {
    const owner = this.#wanting[0];
    if (owner !== undefined && owner !== by) owner.wake();
  }

  #forget(member: SoloMember): boolean {
    const index = this.#wanting.indexOf(member);
    if (index < 0) return false;
    this.#wanting.splice(index, 1);
    return true;
  }
}
