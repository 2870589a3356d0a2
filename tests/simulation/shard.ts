/**
 * Plays a part of the seeds, as a process of its own: `shard.ts FROM COUNT STEP`. Tells on standard output, a line each, which seed comes and what came of it.
 *
 * @module
 */
import { generatePlan } from "./generate.ts";
import { play } from "./world.ts";

const [from = 1, count = 1, step = 1] = process.argv.slice(2).map(Number);

for (let played = 0; played < count; played += 1) {
  const seed = from + played * step;
  process.stdout.write(`seed ${seed}\n`);
  const { violation, ms, starts, requests } = await play(generatePlan(seed));
  const line = { seed, ms, starts, requests, promised: violation?.promised, what: violation?.message };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
process.exit(0);
