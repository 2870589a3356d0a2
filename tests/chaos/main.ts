/**
 * `npm run chaos -- --adapter A --seconds N`: a chaos run on a real engine, and its table. Exits with 1 when a promise was broken.
 *
 * @module
 */
import { runScript } from "../support/script.ts";
import { ADAPTERS } from "./engines.ts";
import { broken, ending, reasons, table } from "./report.ts";
import { runChaos } from "./run.ts";

await runScript({
  name: "chaos",
  summary: "Kill, freeze and restart producers, workers and the server",
  about:
    "All at once, with faults of the network, by a seed; a ledger kept apart checks that each accepted job was finished.",
  exits: { 0: "PASS: every promise was kept", 1: "FAIL: a promise was broken, or the run itself failed" },
  flags: {
    adapter: { kind: "choice", of: ADAPTERS, help: "the engine; without it one after the other" },
    seconds: { kind: "count", unit: "seconds", least: 1, default: 120, help: "how long the faults last" },
    workers: { kind: "count", unit: "", least: 1, default: 3, help: "how many workers, where there are any" },
    producers: { kind: "count", unit: "", least: 1, default: 2, help: "how many producers" },
    seed: {
      kind: "count",
      unit: "",
      least: 1,
      help: "draws what happens when; drawn and printed without it",
    },
  },
  async run({ flags }) {
    const { seconds, workers, producers, seed = 1 + (Date.now() % 1_000_000) } = flags;
    const reports = [];
    for (const adapter of ADAPTERS) {
      if (flags.adapter !== undefined && flags.adapter !== adapter) continue;
      console.log(`${adapter}: ${seconds} s of faults, seed ${seed}`);
      const say = (line: string) => console.log(`  ${line}`);
      reports.push(await runChaos({ adapter, seconds, seed, workers, producers, say }));
    }
    console.log(table(reports));
    console.log(reasons(reports));
    const lines = reports.flatMap((one) => broken(one).map((line) => `${one.adapter}: ${line}`));
    for (const line of lines) console.log(line);
    console.log(ending(lines));
    return lines.length === 0 ? 0 : 1;
  },
});
