/**
 * The pulls of one queue that wait for a first message: who they are, and when they are to look up.
 *
 * @module
 */
import { Chain, type Chained } from "../../src/chain.ts";
import { onAbort } from "./aborting.ts";

/** A pull that waits at the server. */
export interface WaitingPull extends Chained {
  /** Ends its wait. */
  readonly signal: AbortSignal | undefined;
  /** Something came in that its wait may end for. */
  heard(): void;
  /** Its wait ends: it is answered with what is there. */
  endWait(): void;
}

export class WaitingPulls {
  readonly #all = new Chain<WaitingPull>();
  /** Signals that are listened to: each by one function for all pulls, not by one for each. */
  readonly #heard = new WeakSet<AbortSignal>();
  #lastHeard: AbortSignal | undefined;

  add(pull: WaitingPull): void {
    this.#all.add(pull);
    if (pull.signal !== this.#lastHeard) this.#hear(pull.signal);
  }

  delete(pull: WaitingPull): void {
    this.#all.delete(pull);
  }

  /** Something came in that their waits may end for. */
  news(): void {
    for (const pull of this.#all.all()) pull.heard();
  }

  #hear(signal: AbortSignal | undefined): void {
    this.#lastHeard = signal;
    if (signal === undefined || this.#heard.has(signal)) return;
    this.#heard.add(signal);
    onAbort(signal, () => {
      for (const pull of this.#all.all()) if (pull.signal === signal) pull.endWait();
    });
  }
}
