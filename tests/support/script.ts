/**
 * What the scripts that test in the large have in common: reading arguments, `--help`, and exit codes.
 *
 * @module
 */
import { type Flags, type ParsedArgs, parseFlags, UsageError } from "../../runtimes/cli/flags.ts";
import { commandHelp } from "../../runtimes/cli/help.ts";

export interface Script<F extends Flags> {
  /** Its name in package.json. */
  readonly name: string;
  /** What may stand beside the flags: `"[NAME…]"`. By default nothing. */
  readonly args?: string;
  readonly summary: string;
  readonly about: string;
  /** What its exit codes tell, but for that of a wrong call. */
  readonly exits: Readonly<Record<number, string>>;
  readonly flags: F;
  /** Does it; answers the exit code. A `UsageError` is told, and becomes 2. */
  run(args: ParsedArgs<F>): Promise<number>;
}

/** Runs a script with the process's arguments, and ends the process. */
export async function runScript<const F extends Flags>(script: Script<F>): Promise<never> {
  process.exit(await codeOf(script, process.argv.slice(2)));
}

async function codeOf<F extends Flags>(script: Script<F>, args: readonly string[]): Promise<number> {
  const { name, flags } = script;
  if (args.includes("--help") || args.includes("-h")) {
    console.log(helpOf(script));
    return 0;
  }
  try {
    const parsed = parseFlags(flags, args);
    if (script.args === undefined && parsed.positionals.length > 0) {
      throw new UsageError("Cannot read the arguments: one stands without a flag; leave it out");
    }
    return await script.run(parsed);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(`${error.message}\nSee \`npm run ${name} -- --help\`.`);
    return 2;
  }
}

function helpOf<F extends Flags>({ name, args = "", summary, about, exits, flags }: Script<F>): string {
  const run = () => Promise.resolve(0);
  const command = { name: `${name} --`, args, summary, about, exits, notes: "", flags, run };
  return commandHelp(command, { start: { any: "npm run" } });
}
