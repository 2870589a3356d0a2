/**
 * One drain at a time by HTTP, in one instance of a server.
 *
 * @module
 */

/** A lock that cannot be held for ever: an instance may live on where the invocation that took it was cut off. */
export class DrainLock {
  #holder: object | undefined;
  #until = 0;

  /**
   * Takes the lock.
   *
   * @param now milliseconds on the platform's clock.
   * @param mostMs after how many it counts as free again, released or not.
   * @returns what releases it; `undefined` when it is taken.
   */
  take(now: number, mostMs: number): (() => void) | undefined {
    if (this.#holder !== undefined && now < this.#until) return undefined;
    const holder = {};
    this.#holder = holder;
    this.#until = now + mostMs;
    return () => {
      if (this.#holder === holder) this.#holder = undefined;
    };
  }
}
