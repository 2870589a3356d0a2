/** A thousand worlds in this process: quick, and what mutants of the loop have to fear. */
import { expect, test } from "bun:test";
import { generatePlan } from "./generate.ts";
import { play } from "./world.ts";

const SEEDS = 1_000;

test(`${SEEDS} worlds break no promise`, async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const { violation } = await play(generatePlan(seed));
    expect(violation === undefined ? "" : `npm run simulate -- --seed ${seed}: ${violation.message}`).toBe(
      "",
    );
  }
});
