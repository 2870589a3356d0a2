/**
 * `npm run simulate -- --seeds N`: plays N simulated worlds. `--seed S` replays one and tells all that happens in it.
 *
 * @module
 */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { ENGINES, type EngineName, playOn } from "./engines.ts";
import { generatePlan } from "./generate.ts";
import type { Plan } from "./plan.ts";
import { type PoolOptions, playSeeds, type SeedResult } from "./pool.ts";
import { shrink } from "./shrink.ts";

const HELP = `Plays simulated worlds: workers, drains and a producer on one broker, with faults, all by a seed.

  npm run simulate -- --seeds N     plays N worlds (10,000 if not said), prints those that break a promise
  npm run simulate -- --seed S      replays the world of a seed and tells all that happens
  npm run simulate -- --plan FILE   replays a plan (JSON; - for standard input)

  --engine E      on this engine: ${ENGINES.join(", ")} (memory)
  --from S        the first seed (1)
  --processes P   on so many processes (the number of cores)
  --shrink        with --seed or --plan: also looks for the smallest world that breaks the same promise
`;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seeds: { type: "string", default: "10000" },
      from: { type: "string", default: "1" },
      seed: { type: "string" },
      plan: { type: "string" },
      engine: { type: "string", default: "memory" },
      processes: { type: "string", default: String(availableParallelism()) },
      shrink: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const { shrink: shrinks } = values;
  const engine = ENGINES.find((one) => one === values.engine);
  if (engine === undefined) {
    throw new RangeError(`Cannot simulate: --engine is unknown; use one of ${ENGINES.join(", ")}`);
  }
  if (values.plan !== undefined) {
    const text = await (values.plan === "-" ? Bun.stdin : Bun.file(values.plan)).text();
    return replay(engine, JSON.parse(text) as Plan, shrinks);
  }
  if (values.seed !== undefined) return replay(engine, generatePlan(whole("--seed", values.seed)), shrinks);
  const [from, count] = [whole("--from", values.from), whole("--seeds", values.seeds)];
  return many({ engine, from, count, processes: whole("--processes", values.processes) });
}

function whole(name: string, text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new RangeError(`Cannot simulate: ${name} is no whole number from 0 on; give one`);
}

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

process.exit(
  await main().catch((error: unknown) => {
    console.log(error instanceof Error ? error.message : String(error));
    return 1;
  }),
);
