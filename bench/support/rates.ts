/**
 * Rates of contenders, run in turn.
 *
 * @module
 */
import { alternate } from "./alternate.ts";
import { median } from "./figures.ts";

/** One contender of a race. */
export interface Runner {
  readonly jobs: number;
  /** Answers how long the jobs took, in milliseconds. */
  readonly run: () => Promise<{ readonly ms: number }>;
}

/** Runs them in turn; answers each one's median of jobs a second. */
export async function race(rounds: number, runners: readonly Runner[]): Promise<number[]> {
  const times = await alternate(
    rounds,
    runners.map((runner) => async () => (await runner.run()).ms),
  );
  return runners.map((runner, at) => median((times[at] as number[]).map((ms) => (runner.jobs / ms) * 1000)));
}
