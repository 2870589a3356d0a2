/**
 * Being told of an abort, cheaply. Adding a listener to a signal and taking it away again costs more than a whole claim, so each signal gets one, and
 * keeps it.
 *
 * @module
 */

const heard = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `fn` when the signal is aborted; answers a function that takes it back. A signal that is aborted by now calls nobody. */
export function onAbort(signal: AbortSignal | undefined, fn: () => void): () => void {
  if (signal === undefined || signal.aborted) return () => {};
  let fns = heard.get(signal);
  if (fns === undefined) {
    const all = new Set<() => void>();
    fns = all;
    heard.set(signal, all);
    signal.addEventListener("abort", () => {
      for (const one of [...all]) one();
      all.clear();
    });
  }
  const mine = fns;
  mine.add(fn);
  return () => mine.delete(fn);
}
