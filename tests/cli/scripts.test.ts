/** The scripts that test in the large are called as the commands are: --help, one sentence for a mistake, and its exit code. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { join, resolve } from "node:path";
import { ending } from "../chaos/report.ts";
import { RunningCommand } from "./process.ts";

// Each test starts processes.
setDefaultTimeout(30_000);

const ROOT = resolve(import.meta.dir, "../..");
const FILES = { chaos: "chaos", simulate: "simulation", mutants: "mutants" } as const;

async function run(name: keyof typeof FILES, ...args: string[]) {
  const main = join(ROOT, "tests", FILES[name], "main.ts");
  await using script = new RunningCommand([process.execPath, main, ...args], { cwd: ROOT });
  return await script.ended();
}

test.each(["chaos", "simulate", "mutants"] as const)("%s tells how it is called", async (name) => {
  for (const flag of ["--help", "-h"]) {
    const { code, out, err } = await run(name, flag);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toContain(`\nUsage: npm run ${name} -- [`);
    expect(out).toMatch(/^ {2}0 {2}.+\n {2}1 {2}.+\n {2}2 {2}it was called wrongly$/m);
  }
});

test.each([
  [
    "chaos",
    ["--adapter", "foo"],
    "Cannot read the arguments: --adapter does not fit; give one of sqlite, redis, nats, object",
  ],
  [
    "chaos",
    ["--seconds", "0"],
    "Cannot read the arguments: --seconds does not fit; give a whole number from 1 on",
  ],
  ["chaos", ["redis"], "Cannot read the arguments: one stands without a flag; leave it out"],
  ["simulate", ["--seedz", "1"], "Cannot read the arguments: --seedz is unknown"],
  [
    "simulate",
    ["--plan", "/no/such.json"],
    "Cannot use --plan: it names no file of JSON; give one, or - for standard input",
  ],
  [
    "simulate",
    ["--plan", "-", "--seed", "1"],
    "Cannot use --plan with --seed: each names a world; leave one out",
  ],
  ["mutants", ["hush"], "Cannot run hush: there is none of that name; leave it out, or see --list"],
] as const)("%s %j is refused in a sentence", async (name, args, sentence) => {
  expect(await run(name, ...args)).toEqual({
    code: 2,
    out: "",
    err: `${sentence}\nSee \`npm run ${name} -- --help\`.\n`,
  });
});

test("mutants --list names them; a chaos run says at its end whether it passed", async () => {
  const { code, out } = await run("mutants", "--list");
  expect([code, out]).toEqual([0, expect.stringMatching(/^lease-margin +a lease counts as lost/)]);
  expect(ending([])).toStartWith("PASS: ");
  expect(ending(["redis: crash: x"])).toStartWith("FAIL: ");
});
