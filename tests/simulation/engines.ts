/**
 * The engines that worlds can be played on. The model holds each to the same contract.
 *
 * @module
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunSqlite } from "../../adapters/sqlite/bun_driver.ts";
import { SqliteBroker } from "../../adapters/sqlite/mod.ts";
import type { SimulatedPlatform } from "../../runtimes/simulated.ts";
import type { Plan } from "./plan.ts";
import { type Played, type PlayOptions, play } from "./world.ts";

export const ENGINES = ["memory", "sqlite"] as const;
export type EngineName = (typeof ENGINES)[number];

/** Plays a plan on an engine. */
export function playOn(engine: EngineName, plan: Plan, options: PlayOptions = {}): Promise<Played> {
  return engine === "memory" ? play(plan, options) : playOnSqlite(plan, options);
}

/** The plan as it can be played on an engine: SQLite's watches and redrives go by a timer of the real clock. */
function planFor(engine: EngineName, plan: Plan): Plan {
  if (engine === "memory") return plan;
  return {
    ...plan,
    lacks: [...plan.lacks.filter((one) => one !== "wake"), "wake"],
    tending: plan.tending.filter((one) => one.kind !== "redrive"),
  };
}

async function playOnSqlite(plan: Plan, options: PlayOptions): Promise<Played> {
  const folder = mkdtempSync(join(tmpdir(), "eddy-world-"));
  let broker: SqliteBroker | undefined;
  const engine = (base: SimulatedPlatform) => {
    const database = bunSqlite({ file: join(folder, "world.db"), synchronous: "normal" });
    broker = new SqliteBroker({ database, wallNow: () => base.wallNow() });
    return broker;
  };
  try {
    return await play(planFor("sqlite", plan), { ...options, engine });
  } finally {
    await broker?.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
