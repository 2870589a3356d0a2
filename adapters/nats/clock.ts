/**
 * The server's clock, as seen from here. It decides when a delayed job is due; a worker's own clock is never sent anywhere.
 *
 * A message stored between two moments of ours carries the server's time, so the difference of the clocks is known to within the round trip. Each use
 * takes the end of that span which makes a job late rather than early.
 *
 * @module
 */

/** How long a reading is good for, in milliseconds: clocks drift. */
const GOOD_FOR_MS = 60_000;

export class ServerClock {
  /** Server time less ours: at least, and at most. */
  #least = 0;
  #most = 0;
  #readAt = Number.NEGATIVE_INFINITY;

  /** Whether nothing is known of it yet. */
  get isUnread(): boolean {
    return this.#readAt === Number.NEGATIVE_INFINITY;
  }

  /** Whether it has to be read again. */
  isStale(now: number): boolean {
    return now - this.#readAt > GOOD_FOR_MS;
  }

  /** A message was stored at `storedAt`, Unix milliseconds of the server's clock, between `from` and `to`, on ours. */
  read(from: number, to: number, storedAt: number): void {
    // Stored times come in whole milliseconds here, cut.
    this.#most = storedAt + 1 - from;
    this.#least = storedAt - to;
    this.#readAt = to;
  }

  /** No later than the server's time. */
  earliest(now: number): number {
    return Math.floor(now + this.#least);
  }

  /** No earlier than the server's time. */
  latest(now: number): number {
    return Math.ceil(now + this.#most);
  }

  /** When, on our clock, the server's has surely reached a time. */
  surelyAt(serverTime: number): number {
    return serverTime - this.#least;
  }
}
