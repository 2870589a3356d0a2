/**
 * What a bench is: a name, a title, and a run that reports rows.
 *
 * @module
 */

/**
 * How much a bench runs. `full` for figures to be told; `quick` for a look; `tiny` only shows that it works, and its figures mean
 * nothing.
 */
export type Size = "full" | "quick" | "tiny";

/** Something a figure has to reach. */
export interface Bar {
  /** As it is printed: `at most 0.07`. */
  readonly text: string;
  readonly met: boolean;
}

/** One figure. */
export interface Row {
  readonly case: string;
  readonly value: number;
  readonly unit: string;
  /** What was run beside it, or what it is held against. */
  readonly against?: string;
  /** The figure as a multiple of the other one. */
  readonly ratio?: number;
  readonly bar?: Bar;
}

export interface Context {
  readonly size: Size;
  /** How often each contender runs; its figure is the median. */
  readonly rounds: number;
  /** The number for this run's size. */
  pick<T>(full: T, quick: T, tiny: T): T;
  row(row: Row): void;
  /** A sentence below the table: what a figure rests on. */
  note(text: string): void;
  /** Tells whoever waits what is being run. */
  progress(text: string): void;
}

export interface Bench {
  readonly name: string;
  readonly title: string;
  run(context: Context): Promise<void>;
}

export function atLeast(value: number, bar: number, unit = ""): Bar {
  return { text: `at least ${bar}${unit}`, met: value >= bar };
}

export function atMost(value: number, bar: number, unit = ""): Bar {
  return { text: `at most ${bar}${unit}`, met: value <= bar };
}
