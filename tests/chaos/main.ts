/**
 * `npm run chaos -- --adapter A --seconds N`: a chaos run on a real engine, and its table. Exits with 1 when a promise was broken.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { ADAPTERS } from "./engines.ts";
import { broken, reasons, table } from "./report.ts";
import { runChaos } from "./run.ts";

const HELP = `Kills, freezes and restarts producers, workers and the server, with faults of the network, all at once, by a seed.

  npm run chaos -- --adapter A --seconds N

  --adapter A   ${ADAPTERS.join(", ")}; not said: one after the other
  --seconds N   how long the faults last (120)
  --workers N   how many workers (3), where there are any
  --producers N how many producers (2)
  --seed S      draws what happens when (drawn and printed, if not said)
`;

function whole(name: string, text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new RangeError(`Cannot run chaos: ${name} is no whole number from 1 on; give one`);
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      adapter: { type: "string" },
      seconds: { type: "string", default: "120" },
      workers: { type: "string", default: "3" },
      producers: { type: "string", default: "2" },
      seed: { type: "string", default: String(1 + (Date.now() % 1_000_000)) },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const workers = whole("--workers", values.workers);
  const producers = whole("--producers", values.producers);
  const [seconds, seed] = [whole("--seconds", values.seconds), whole("--seed", values.seed)];
  const adapters = ADAPTERS.filter((one) => values.adapter === undefined || one === values.adapter);
  if (adapters.length === 0) {
    throw new RangeError(`Cannot run chaos: --adapter is unknown; use one of ${ADAPTERS.join(", ")}`);
  }
  const reports = [];
  for (const adapter of adapters) {
    console.log(`${adapter}: ${seconds} s of faults, seed ${seed}`);
    const say = (line: string) => console.log(`  ${line}`);
    reports.push(await runChaos({ adapter, seconds, seed, workers, producers, say }));
  }
  console.log(table(reports));
  console.log(reasons(reports));
  const lines = reports.flatMap((one) => broken(one).map((line) => `${one.adapter}: ${line}`));
  for (const line of lines) console.log(line);
  return lines.length === 0 ? 0 : 1;
}

process.exit(await main());
