/** The same worlds on SQLite: the loop and the model are the very same, so the adapter is held to every promise. */
import { expect, test } from "bun:test";
import { playOn } from "./engines.ts";
import { generatePlan } from "./generate.ts";

const SEEDS = 300;

test(`${SEEDS} worlds on SQLite break no promise`, async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const { violation } = await playOn("sqlite", generatePlan(seed));
    const replay = `npm run simulate -- --engine sqlite --seed ${seed}`;
    expect(violation === undefined ? "" : `${replay}: ${violation.message}`).toBe("");
  }
}, 300_000);
