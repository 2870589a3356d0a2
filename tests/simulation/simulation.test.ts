/** Ten thousand worlds. `npm run simulate -- --seeds N` plays more, `--seed S` replays one. */
import { expect, test } from "bun:test";
import { availableParallelism } from "node:os";
import { playSeeds } from "./pool.ts";

const SEEDS = 10_000;

test(`${SEEDS} worlds break no promise`, async () => {
  const report = await playSeeds({ from: 1, count: SEEDS, processes: availableParallelism() });
  const failed = report.failed.map(({ seed, what }) => `npm run simulate -- --seed ${seed}: ${what}`);
  console.log(`${report.played} worlds in ${(report.tookMs / 1_000).toFixed(1)} s`);
  expect(failed).toEqual([]);
  expect(report.played).toBe(SEEDS);
}, 900_000);
