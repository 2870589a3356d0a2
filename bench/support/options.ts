/**
 * The command line of the benches. Pure.
 *
 * @module
 */
import { parseArgs } from "node:util";
import type { Size } from "./bench.ts";

export type CommandLine =
  | { readonly kind: "help" }
  | { readonly kind: "wrong"; readonly message: string }
  | { readonly kind: "run"; readonly names: readonly string[]; readonly json: boolean; readonly size: Size };

export function help(benches: readonly { readonly name: string; readonly title: string }[]): string {
  const width = Math.max(...benches.map(({ name }) => name.length));
  return `Measures Eddy beside what people use today, in one run.

Usage: npm run bench [-- NAME… [options]]

${benches.map(({ name, title }) => `  ${name.padEnd(width)}  ${title}`).join("\n")}

Without a name all of them run, one after the other.

  --json   one object a line: bench, case, value, unit, against, ratio (notes go to standard error)
  --quick  a fraction of the jobs: for a look
  --tiny   a few jobs: only shows that each bench works, its figures mean nothing
  --help   this text

Peers are installed into bench/node_modules by the first run. Figures are of this machine and this minute; ratios travel.
`;
}

/** Reads the arguments. Never throws. */
export function readCommandLine(args: readonly string[], known: readonly string[]): CommandLine {
  let parsed: { values: Record<string, boolean | undefined>; positionals: string[] };
  try {
    parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        json: { type: "boolean" },
        quick: { type: "boolean" },
        tiny: { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    });
  } catch (error) {
    return { kind: "wrong", message: `Cannot read the arguments: ${(error as Error).message}; see --help` };
  }
  const { values, positionals } = parsed;
  if (values.help === true) return { kind: "help" };
  for (const name of positionals) {
    if (!known.includes(name)) {
      return {
        kind: "wrong",
        message: `Cannot run bench ${name}: there is none; use some of ${known.join(", ")}`,
      };
    }
  }
  const size = values.tiny === true ? "tiny" : values.quick === true ? "quick" : "full";
  return {
    kind: "run",
    names: positionals.length === 0 ? known : [...new Set(positionals)],
    json: values.json === true,
    size,
  };
}
