/**
 * Plays a part of the seeds, as a process of its own: `shard.ts ENGINE FROM COUNT STEP`. Tells on standard output, a line each, which seed comes and what came of it.
 *
 * @module
 */
import { type EngineName, playOn } from "./engines.ts";
import { generatePlan } from "./generate.ts";

const [engine, ...numbers] = process.argv.slice(2);
const [from = 1, count = 1, step = 1] = numbers.map(Number);

for (let played = 0; played < count; played += 1) {
  const seed = from + played * step;
  process.stdout.write(`seed ${seed}\n`);
  const { violation, ms, starts, requests } = await playOn(engine as EngineName, generatePlan(seed));
  const line = { seed, ms, starts, requests, promised: violation?.promised, what: violation?.message };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
process.exit(0);
