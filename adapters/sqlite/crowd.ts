/**
 * How many connections want the database, and how often each of them looks whether it is free. Pure.
 *
 * A look costs processor time, which whoever has the database lacks; and one that comes between two transactions of a turn ends the turn,
 * after which who begins the next has to read all pages anew. So the looks of all together should be no more than a few for each turn,
 * however many they are: the more there are, the more seldom each looks.
 *
 * @module
 */

/** The mean gap between looks of who knows of no others, in milliseconds. */
const ALONE_MS = 2;
/** By how much it grows with each of them, in milliseconds. */
const GAP_MS = 3;
/**
 * Each look comes sooner than the one before; who has waited for so many milliseconds, for each other that wants the database, looks as
 * often as if there were none. A round of turns takes less, mostly, so that who waited longest is next, mostly.
 */
const WAIT_MS = 15;
/** Where more want the database than so many, they look as if they were so many: the waits must end within `busyTimeoutMs`. */
const MOST = 64;

/** The crowd is counted no more often than this, in milliseconds. */
const COUNT_EVERY_MS = 100;
/** Who was one of the crowd is so for this long, in milliseconds: longer than a round of turns in a large one. */
export const CROWD_MS = 1000;

/** What one connection knows of the crowd. All of it keep themselves in a table, so all know the same, and none gets less than others. */
export class Crowd {
  #size = 1;
  #countedAt = -Infinity;
  #isIn = false;

  /** Others ended this one's turn, or made it wait for long: its next transaction is to count. */
  join(): void {
    this.#isIn = true;
  }

  /** Whether the next transaction is to count. */
  get isDue(): boolean {
    return this.#isIn;
  }

  /** To be called in each such transaction. `count` enters this one, and answers how many there are. */
  countAt(now: number, count: () => number): void {
    if (!this.#isIn) return;
    // Should it fail, the transaction is tried again without.
    this.#isIn = false;
    if (now - this.#countedAt < COUNT_EVERY_MS) return;
    this.#size = count();
    this.#countedAt = now;
  }

  /** How many want the database, this one included; 1 where no others are known of. */
  sizeAt(now: number): number {
    return now - this.#countedAt < CROWD_MS ? this.#size : 1;
  }
}

/**
 * After how many milliseconds to look again.
 *
 * @param crowd how many want the database, whoever asks among them: 1 where no others are known.
 * @param waitedMs for how long it has waited.
 * @param random in [0, 1): they must not look in step.
 */
export function nextLookMs(crowd: number, waitedMs: number, random: number): number {
  const others = Math.min(MOST, crowd) - 1;
  const gaps = Math.max(0, others - waitedMs / WAIT_MS);
  return (ALONE_MS + GAP_MS * gaps) * (0.5 + random);
}
