/**
 * `npm run simulate -- --seeds N`: plays N simulated worlds. `--seed S` replays one and tells all that happens in it.
 *
 * @module
 */
import { availableParallelism } from "node:os";
import { UsageError } from "../../runtimes/cli/flags.ts";
import { runScript } from "../support/script.ts";
import { ENGINES, type EngineName, playOn } from "./engines.ts";
import { generatePlan } from "./generate.ts";
import type { Plan } from "./plan.ts";
import { type PoolOptions, playSeeds, type SeedResult } from "./pool.ts";
import { shrink } from "./shrink.ts";

async function many(options: PoolOptions & { readonly engine: EngineName }): Promise<number> {
  const { engine, count } = options;
  let played = 0;
  const tell = (result: SeedResult) => {
    played += 1;
    if (result.promised !== undefined) console.log(`seed ${result.seed}: ${result.what}`);
    if (process.stdout.isTTY && played % 100 === 0) process.stdout.write(`\r${played} of ${count} `);
  };
  const report = await playSeeds({ ...options, heard: tell });
  const seconds = report.tookMs / 1_000;
  console.log(
    `${report.played} worlds in ${seconds.toFixed(1)} s (${(report.played / seconds).toFixed(0)} a second), ` +
      `${(report.simulatedMs / 3_600_000).toFixed(1)} h of simulated time, ${report.starts} handlers started, ` +
      `${report.requests} requests; violations: ${report.failed.length}`,
  );
  const kinds = new Map<string, number[]>();
  for (const { promised = "", seed } of report.failed)
    kinds.set(promised, [...(kinds.get(promised) ?? []), seed]);
  for (const [promised, seeds] of kinds)
    console.log(`  ${promised}: ${seeds.length} (${seeds.slice(0, 6).join(", ")})`);
  const first = report.failed[0];
  if (first === undefined) return 0;
  await smallest(engine, generatePlan(first.seed));
  const on = engine === "memory" ? "" : ` --engine ${engine}`;
  console.log(`\nReplay: npm run simulate --${on} --seed ${first.seed}`);
  return 1;
}

async function replay(engine: EngineName, plan: Plan, shrinks: boolean): Promise<number> {
  const { violation, ms } = await playOn(engine, plan, { trace: (line) => console.log(line) });
  console.log(
    violation === undefined ? `No promise broken in ${ms.toFixed(0)} ms.` : `\n${violation.message}`,
  );
  if (violation === undefined) return 0;
  if (shrinks) await smallest(engine, plan);
  return 1;
}

async function smallest(engine: EngineName, plan: Plan): Promise<void> {
  const { violation } = await playOn(engine, plan);
  if (violation === undefined) return;
  const small = await shrink(plan, violation.promised, (one) => playOn(engine, one));
  console.log(
    `\nThe smallest world found that breaks the same promise, for --plan:\n${JSON.stringify(small)}`,
  );
  const lines: string[] = [];
  await playOn(engine, small, { trace: (line) => lines.push(line) });
  console.log(lines.slice(-60).join("\n"));
}

async function planIn(file: string): Promise<Plan> {
  try {
    return JSON.parse(await (file === "-" ? Bun.stdin : Bun.file(file)).text()) as Plan;
  } catch (error) {
    throw new UsageError("Cannot use --plan: it names no file of JSON; give one, or - for standard input", {
      cause: error,
    });
  }
}

await runScript({
  name: "simulate",
  summary: "Play simulated worlds",
  about: `Workers, drains and a producer on one broker, with faults, all by a seed. Prints the worlds that break a promise, and the smallest
found of the first; with --seed or --plan it replays one world and tells all that happens in it.`,
  exits: { 0: "no promise was broken", 1: "a promise was broken, or the run itself failed" },
  flags: {
    seeds: { kind: "count", unit: "worlds", least: 1, default: 10_000, help: "how many to play" },
    from: { kind: "count", unit: "", least: 0, default: 1, help: "the first seed" },
    seed: { kind: "count", unit: "", least: 0, help: "replay the world of this seed" },
    plan: { kind: "text", value: "FILE", help: "replay a plan (JSON); - for standard input" },
    engine: { kind: "choice", of: ENGINES, default: "memory", help: "the engine" },
    processes: {
      kind: "count",
      unit: "",
      least: 1,
      default: availableParallelism(),
      help: "how many processes play",
    },
    shrink: {
      kind: "switch",
      help: "with --seed or --plan: also look for the smallest world that breaks the same promise",
    },
  },
  async run({ flags }) {
    const { seeds: count, from, seed, plan, processes, shrink: shrinks } = flags;
    const engine = flags.engine as EngineName;
    if (plan !== undefined && seed !== undefined) {
      throw new UsageError("Cannot use --plan with --seed: each names a world; leave one out");
    }
    if (plan !== undefined) return await replay(engine, await planIn(plan), shrinks);
    if (seed !== undefined) return await replay(engine, generatePlan(seed), shrinks);
    return await many({ engine, from, count, processes });
  },
});
