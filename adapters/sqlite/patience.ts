/**
 * Waiting for a database that another connection has. It is waited for by a timer, never by SQLite itself, which would make the
 * whole process stand still.
 *
 * @module
 */

/** Who waits looks again after 1 to this many milliseconds, at random, so that those who wait have equal chances. */
const LOOK_MS = 3;

export interface Patience {
  /** Whether an error says that another connection has the database. */
  readonly isBusy: (error: unknown) => boolean;
  /** How long to wait at most, in milliseconds. */
  readonly busyTimeoutMs: number;
  /** Ends the wait early. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Does something at once, or as soon as the database can be had; it must change nothing when it cannot. Rejects with its error,
 * which is a busy one when the time was up or the wait was ended.
 */
export async function onceFree<T>(act: () => T, patience: Patience): Promise<T> {
  const givesUpAt = performance.now() + patience.busyTimeoutMs;
  for (;;) {
    try {
      return act();
    } catch (error) {
      const isOver = patience.signal?.aborted === true || performance.now() >= givesUpAt;
      if (isOver || !patience.isBusy(error)) throw error;
    }
    await elapse(1 + Math.random() * (LOOK_MS - 1));
  }
}

/** Resolves after so many milliseconds; soon where the time has passed already, of which runtimes would warn. */
export function elapse(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
}
