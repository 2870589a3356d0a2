/**
 * `npm run mutants`: takes one guard after the other out of a copy of the project, and demands that one of its named tests goes red.
 * `npm run mutants -- NAME …` runs those alone.
 *
 * @module
 */
import { UsageError } from "../../runtimes/cli/flags.ts";
import { runScript } from "../support/script.ts";
import { MUTANTS } from "./list.ts";
import type { Mutant } from "./mutant.ts";
import { Tree } from "./tree.ts";

/** A mutant's tests may take so long; one that goes round in a circle takes as long as it may. */
const TIMEOUT_MS = 120_000;

async function main(names: readonly string[]): Promise<number> {
  const unknown = names.filter((name) => !MUTANTS.some((one) => one.name === name));
  if (unknown.length > 0) {
    throw new UsageError(
      `Cannot run ${unknown.join(", ")}: there is none of that name; leave it out, or see --list`,
    );
  }
  const chosen = names.length === 0 ? MUTANTS : MUTANTS.filter((one) => names.includes(one.name));
  const tree = new Tree();
  try {
    if (!(await soundIsGreen(tree, chosen))) return 1;
    const alive: Mutant[] = [];
    for (const mutant of chosen) if (!(await dies(tree, mutant))) alive.push(mutant);
    console.log(`${chosen.length - alive.length} of ${chosen.length} mutants died`);
    for (const { name, loses } of alive)
      console.log(`  lives: ${name} (no test noticed the loss of: ${loses})`);
    return alive.length === 0 ? 0 : 1;
  } finally {
    tree.remove();
  }
}

/** Without a mutant all named tests pass: else a red test would show nothing. */
async function soundIsGreen(tree: Tree, mutants: readonly Mutant[]): Promise<boolean> {
  for (const file of new Set(mutants.flatMap((one) => one.tests))) {
    const { failed, passed } = await tree.run([file], TIMEOUT_MS * 2);
    if (failed === undefined && passed > 0) continue;
    console.log(`Cannot run mutants: ${file} is red without any (${failed ?? "no test ran"}); mend it first`);
    return false;
  }
  return true;
}

async function dies(tree: Tree, mutant: Mutant): Promise<boolean> {
  const { failed, ms } = await tree.run(mutant.tests, TIMEOUT_MS, mutant);
  const by = failed === undefined ? "LIVES" : failed.slice(0, 100);
  console.log(`${mutant.name.padEnd(40)} ${(ms / 1_000).toFixed(1).padStart(6)} s  ${by}`);
  return failed !== undefined;
}

await runScript({
  name: "mutants",
  args: "[NAME…]",
  summary: "Take one guard after the other out of a copy of the project",
  about: "One of the tests that a mutant names must go red without its guard. Runs those named, else all.",
  exits: { 0: "every mutant died", 1: "a mutant lives, or a test was red without any" },
  flags: { list: { kind: "switch", help: "print the names, and run none" } },
  async run({ flags, positionals }) {
    if (!flags.list) return await main(positionals);
    for (const { name, loses } of MUTANTS) console.log(`${name.padEnd(40)} ${loses}`);
    return 0;
  },
});
