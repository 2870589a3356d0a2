/**
 * Being told of an abort, cheaply. Adding a listener to a signal and taking it away again costs more than a whole claim, so each signal gets one, and
 * keeps it.
 *
 * @module
 */
import { Chain, Chained } from "../../src/chain.ts";

class Waiting extends Chained {
  readonly fn: () => void;
  constructor(fn: () => void) {
    super();
    this.fn = fn;
  }
}

const heard = new WeakMap<AbortSignal, Chain<Waiting>>();

/** Calls `fn` when the signal is aborted; answers a function that takes it back. A signal that is aborted by now calls nobody. */
export function onAbort(signal: AbortSignal | undefined, fn: () => void): () => void {
  if (signal === undefined || signal.aborted) return () => {};
  let chain = heard.get(signal);
  if (chain === undefined) {
    const all = new Chain<Waiting>();
    chain = all;
    heard.set(signal, all);
    signal.addEventListener("abort", () => {
      for (const waiting of all.all()) if (all.delete(waiting)) waiting.fn();
    });
  }
  const mine = chain;
  const waiting = new Waiting(fn);
  mine.add(waiting);
  return () => mine.delete(waiting);
}
