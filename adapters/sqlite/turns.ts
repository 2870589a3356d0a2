/**
 * Whose turn it is where several processes write into one database. SQLite's own waiting blocks the process, looks ever more seldom,
 * and lets who asks again at once have it again: so a busy process kept the others out for seconds. Here who waits looks
 * by a timer, often or seldom by how many wait, and who has had the database for a while steps back for a moment if others use it, too.
 *
 * @module
 */
import { type Crowd, nextLookMs } from "./crowd.ts";
import { elapse } from "./patience.ts";

/** How long a connection may have written, in milliseconds, before it steps back; pauses between its transactions not counted. */
const TURN_MS = 20;
/** For how long it steps back, in milliseconds: whoever waits has looked by then. */
const REST_MS = 4;
/** Others that have not been noticed for so long, in milliseconds, are not stepped back for. */
const RECENT_MS = 500;
/**
 * Who waited for so long, in milliseconds, and for so many times as long as it did not want the database before, is one of a crowd, as is whose
 * turn others end. Who only comes now and then is not, and looks often.
 */
const LONG_WAIT_MS = 50;
const LONG_WAIT_TIMES = 4;

export interface TurnOptions {
  /** How long a transaction waits for others' to end, in milliseconds, from when it was asked for or this connection's last one was through. */
  readonly busyTimeoutMs: number;
  /** A number that changes whenever another connection has committed. */
  readonly otherCommits: () => number | undefined;
  /** Whether an error says that another connection has the database. */
  readonly isBusy: (error: unknown) => boolean;
  /** What is known of others that want the database; each transaction counts them. */
  readonly crowd: Crowd;
}

/** The transactions of one connection: one after another, in the order they were asked for. */
export class Turns {
  readonly #options: TurnOptions;
  /** Resolves when the first of those who wait is through. */
  #waiting: Promise<void> | undefined;
  /** Whether the next transaction begins a turn. */
  #isFresh = true;
  #writtenMs = 0;
  #endedAt = 0;
  #restsUntil = 0;
  #seenCommits: number | undefined;
  #othersAt = -Infinity;

  constructor(options: TurnOptions) {
    this.#options = options;
    this.#seenCommits = this.#otherCommits();
  }

  /** While a transaction waits until others have ended theirs: resolves when it is through. */
  get waiting(): Promise<void> | undefined {
    return this.#waiting;
  }

  /** Runs a transaction, at once where it can be. Rejects with its error, which is a busy one when the time was up. */
  async take<T>(transaction: () => T): Promise<T> {
    const askedAt = performance.now();
    while (this.#waiting !== undefined) await this.#waiting;
    // In a long line of this connection's own its time would be up, though others never had the database for long.
    const givesUpAt = Math.max(askedAt, this.#endedAt) + this.#options.busyTimeoutMs;
    if (performance.now() >= this.#restsUntil) {
      try {
        return this.#run(transaction);
      } catch (error) {
        if (!this.#isBusy(error) || performance.now() >= givesUpAt) throw error;
        if (performance.now() - this.#endedAt < REST_MS) this.#options.crowd.join();
      }
    }
    const through = Promise.withResolvers<void>();
    this.#waiting = through.promise;
    try {
      return await this.#onceFree(transaction, givesUpAt);
    } finally {
      this.#waiting = undefined;
      through.resolve();
    }
  }

  async #onceFree<T>(transaction: () => T, givesUpAt: number): Promise<T> {
    const { crowd } = this.#options;
    const since = performance.now();
    const size = crowd.sizeAt(since);
    const longMs = Math.max(LONG_WAIT_MS, LONG_WAIT_TIMES * (since - this.#endedAt));
    let lookAt = since + nextLookMs(size, 0, Math.random());
    for (;;) {
      await elapse(Math.max(this.#restsUntil, Math.min(lookAt, givesUpAt)) - performance.now());
      const waitedMs = performance.now() - since;
      if (waitedMs >= longMs) crowd.join();
      this.#isFresh = true;
      try {
        return this.#run(transaction);
      } catch (error) {
        const now = performance.now();
        if (!this.#isBusy(error) || now >= givesUpAt) throw error;
        lookAt = now + nextLookMs(size, waitedMs, Math.random());
      }
    }
  }

  #run<T>(transaction: () => T): T {
    const beganAt = performance.now();
    const result = transaction();
    const endedAt = performance.now();
    // Where it was left alone for long enough, who waited has had it.
    if (this.#isFresh || beganAt - this.#endedAt >= REST_MS) this.#writtenMs = 0;
    this.#isFresh = false;
    this.#writtenMs += endedAt - beganAt;
    this.#endedAt = endedAt;
    if (this.#writtenMs >= TURN_MS) this.#endTurn(endedAt);
    return result;
  }

  #endTurn(now: number): void {
    this.#writtenMs = 0;
    const commits = this.#otherCommits();
    if (commits !== this.#seenCommits) this.#othersAt = now;
    this.#seenCommits = commits;
    if (now - this.#othersAt < RECENT_MS) this.#restsUntil = now + REST_MS;
  }

  /** A transaction that is through must not seem to have failed for this. */
  #otherCommits(): number | undefined {
    try {
      return this.#options.otherCommits();
    } catch {
      return undefined;
    }
  }

  #isBusy(error: unknown): boolean {
    if (!this.#options.isBusy(error)) return false;
    this.#othersAt = performance.now();
    return true;
  }
}
