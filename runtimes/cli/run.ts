/**
 * From arguments to a command's exit code.
 *
 * @module
 */
import manifest from "../../package.json" with { type: "json" };
import { BrokerError, EnqueueError } from "../../src/errors.ts";
import { noError } from "../../src/thrown.ts";
import { type Command, type Context, FAILED, MISUSED } from "./command.ts";
import { parseFlags, UsageError } from "./flags.ts";
import { commandHelp, invocation, overview } from "./help.ts";
import { InputError } from "./io.ts";
import { placesOf } from "./places.ts";
import { printable } from "./printable.ts";
import { StoppedError } from "./stopped.ts";

/** The commands by name, each loaded when it is needed. */
export type Commands = Readonly<Record<string, () => Promise<{ readonly default: Command }>>>;

/** Runs the command that the first argument names; answers the exit code. Never rejects. */
export async function runCommand(
  commands: Commands,
  args: readonly string[],
  context: Context,
): Promise<number> {
  const { io } = context;
  const [name, ...rest] = args;
  if (name === "--version") {
    io.out(manifest.version);
    return 0;
  }
  // `help COMMAND` is `COMMAND --help`.
  if (name === "help" && rest[0] !== undefined)
    return await runCommand(commands, [rest[0], "--help"], context);
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    const all = await Promise.all(Object.values(commands).map(async (load) => (await load()).default));
    io[name === undefined ? "err" : "out"](overview(all, context.shell));
    return name === undefined ? MISUSED : 0;
  }
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (load === undefined) {
    const is = name.startsWith("-") ? "a flag stands before its name" : "there is none of that name";
    io.err(`Cannot run the command: ${is}; use one of ${Object.keys(commands).join(", ")}`);
    io.err(`See \`${context.shell.start.any} --help\`.`);
    return MISUSED;
  }
  try {
    const command = (await load()).default;
    if (asksForHelp(rest)) {
      io.out(commandHelp(command, context.shell));
      return 0;
    }
    return await command.run(context, parseFlags(command.flags, rest));
  } catch (error) {
    return tell(error, name, context);
  }
}

function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return args.slice(0, end < 0 ? undefined : end).some((arg) => arg === "--help" || arg === "-h");
}

function tell(error: unknown, name: string, { io, shell }: Context): number {
  if (error instanceof UsageError) {
    io.err(printable(error.message));
    io.err(`See \`${invocation(name, shell)} --help\`.`);
    return MISUSED;
  }
  const lines = linesOf(error);
  for (const line of lines) io.err(printable(line));
  // What the runtime says of its flags is no use to whoever started a script, which has them in it.
  const flags = new Set(lines.join(" ").match(/--allow-[a-z]+/g));
  if (flags.size > 0 && shell.permissionHint !== undefined)
    io.err(shell.permissionHint(name, [...flags].join(" and ")));
  return error instanceof StoppedError ? error.code : FAILED;
}

/** How Deno ends such a message; it fits those alone who typed `deno run` themselves. */
const RUN_AGAIN = /, run again with the (--allow-[a-z]+) flag/;

/**
 * An error as a user may see it, in lines. Eddy's own say what is wrong and hold no body or token; of the system's its code, call and path are shown, of all
 * others only class and places, for their text could quote anything.
 */
function linesOf(error: unknown): string[] {
  if (error instanceof BrokerError || error instanceof EnqueueError) return [error.message];
  if (error instanceof StoppedError || error instanceof InputError) return [error.message];
  if ((error instanceof TypeError || error instanceof RangeError) && error.message.startsWith("Cannot "))
    return [error.message];
  if (!(error instanceof Error)) return [`Failed: ${noError(error)}`];
  // Deno's: it names the file, variable or host that a permission is missing for.
  if (error.name === "NotCapable") {
    return [`Cannot go on without a permission: ${error.message.replace(RUN_AGAIN, " ($1)")}`];
  }
  const failed = systemFault(error) ?? `${classOf(error)}, a fault of the program or of the worker's file`;
  return [`Failed: ${failed}`, ...placesOf(error).map((place) => `    at ${place}`)];
}

/** `ENOENT: open the/path`, for what the operating system refused. */
function systemFault(error: Error): string | undefined {
  const { code, syscall, path } = error as { code?: unknown; syscall?: unknown; path?: unknown };
  if (typeof code !== "string" || !/^E[A-Z0-9]+$/.test(code)) return undefined;
  const call = [syscall, path].filter((part) => typeof part === "string" && part !== "").join(" ");
  return call === "" ? code : `${code}: ${call}`;
}

/** What a program calls its errors: their class, unless only their name says it. */
function classOf(error: Error): string {
  const name = error.constructor?.name ?? "";
  const said = name === "" || name === "Error" ? error.name : name;
  return /^[\w$.]{1,100}$/.test(said) ? said : "Error";
}
