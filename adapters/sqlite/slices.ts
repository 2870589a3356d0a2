import { elapse } from "./patience.ts";
import type { Tables } from "./statements.ts";

/** A slice of a `clear` or `redrive` is a transaction of so many jobs at most: no other verb, in whichever process, waits for long. */
const ROWS_PER_SLICE = 1000;

/** Runs one transaction. */
export type Write = <T>(fn: (tables: Tables, now: number) => T) => Promise<T>;

/**
 * One transaction after another, each on as many jobs as may be: on fewer, down to one, where there is no room for more on
 * the disk, since removing takes some, too.
 */
export class Slices {
  readonly #write: Write;
  readonly #isFull: (error: unknown) => boolean;
  #rows = ROWS_PER_SLICE;

  constructor(write: Write, isFull: (error: unknown) => boolean) {
    this.#write = write;
    this.#isFull = isFull;
  }

  /** Does the next one, on `most` jobs at most. `fn` is told how many, and may run again. */
  async next<T>(most: number, fn: (tables: Tables, now: number, rows: number) => T): Promise<T> {
    for (;;) {
      const rows = Math.min(this.#rows, most);
      try {
        const result = await this.#write((tables, now) => fn(tables, now, rows));
        this.#rows = Math.min(ROWS_PER_SLICE, this.#rows * 2);
        return result;
      } catch (error) {
        if (rows === 1 || !this.#isFull(error)) throw error;
        this.#rows = Math.ceil(rows / 10);
      }
    }
  }

  /** Repeats a step until it finds no job any more or has done `most`; answers how many it did. */
  async all(most: number, step: (tables: Tables, rows: number) => number): Promise<number> {
    let done = 0;
    while (done < most) {
      const beganAt = performance.now();
      const count = await this.next(most - done, (tables, _now, rows) => step(tables, rows));
      if (count === 0) break;
      done += count;
      // As long as it took: other processes wait for the database by looking now and then, and must find it free.
      await elapse(performance.now() - beganAt);
    }
    return done;
  }
}
