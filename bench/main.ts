/**
 * `npm run bench`: measures Eddy beside what people use today, in one run.
 *
 * @module
 */
import { cpus } from "node:os";
import { BENCHES } from "./benches/all.ts";
import type { Bench, Context, Row, Size } from "./support/bench.ts";
import { help, readCommandLine } from "./support/options.ts";
import { installPeers } from "./support/peers.ts";
import { jsonLine, table } from "./support/table.ts";

/** A median needs three. */
const ROUNDS: Readonly<Record<Size, number>> = { full: 3, quick: 3, tiny: 1 };

const print = (text: string) => process.stdout.write(`${text}\n`);
const aside = (text: string) => process.stderr.write(`${text}\n`);

/** On a terminal, what is being run stands on one line that is written over. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text.slice(0, 100)}`);
}

async function runBench(bench: Bench, size: Size, json: boolean): Promise<void> {
  const rows: Row[] = [];
  const notes: string[] = [];
  const context: Context = {
    size,
    rounds: ROUNDS[size],
    pick: (full, quick, tiny) => (size === "full" ? full : size === "quick" ? quick : tiny),
    row(full) {
      // Figures that mean nothing are held against nothing.
      const { bar, ...bare } = full;
      rows.push(size === "tiny" || bar === undefined ? bare : full);
      if (json) print(jsonLine(bench.name, full));
    },
    note: (text) => notes.push(text),
    progress: (text) => progress(`${bench.name}: ${text}`),
  };
  const from = performance.now();
  await bench.run(context);
  progress("");
  const seconds = ((performance.now() - from) / 1000).toFixed(0);
  const said = json ? aside : print;
  said(`\n${bench.name}: ${bench.title} (${seconds} s)`);
  if (!json) for (const line of table(rows)) print(`  ${line}`);
  for (const note of notes) said(`  · ${note}`);
}

const line = readCommandLine(
  process.argv.slice(2),
  BENCHES.map(({ name }) => name),
);
if (line.kind === "help") {
  process.stdout.write(help(BENCHES));
  process.exit(0);
}
if (line.kind === "wrong") {
  aside(line.message);
  process.exit(2);
}
try {
  await installPeers((text) => aside(text));
  aside(
    `Bun ${Bun.version}, ${cpus().length} cores, ${cpus()[0]?.model ?? "unknown processor"}; medians of ${ROUNDS[line.size]}` +
      (line.size === "tiny" ? "; tiny: these figures mean nothing" : ""),
  );
  for (const name of line.names) {
    const bench = BENCHES.find((one) => one.name === name) as Bench;
    await runBench(bench, line.size, line.json);
  }
  process.exit(0);
} catch (error) {
  aside(`\n${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
