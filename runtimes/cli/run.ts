/**
 * From arguments to a command's exit code.
 *
 * @module
 */
import { BrokerError, EnqueueError } from "../../src/errors.ts";
import type { Command, Context } from "./command.ts";
import { parseFlags, UsageError } from "./flags.ts";
import { commandHelp, invocation, overview } from "./help.ts";

/** The commands by name, each loaded when it is needed. */
export type Commands = Readonly<Record<string, () => Promise<{ readonly default: Command }>>>;

/** Exit code of a command that failed. */
export const FAILED = 1;
/** Exit code of a command that was called wrongly. */
export const MISUSED = 2;

/** Runs the command that the first argument names; answers the exit code. Never rejects. */
export async function runCommand(
  commands: Commands,
  args: readonly string[],
  context: Context,
): Promise<number> {
  const { io } = context;
  const [name, ...rest] = args;
  if (name === undefined || name === "--help" || name === "help") {
    const all = await Promise.all(Object.values(commands).map(async (load) => (await load()).default));
    io[name === undefined ? "err" : "out"](overview(all, context.shell));
    return name === undefined ? MISUSED : 0;
  }
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (load === undefined) {
    io.err(
      `Cannot run the command: there is none of that name; use one of ${Object.keys(commands).join(", ")}`,
    );
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
  return args.slice(0, end < 0 ? undefined : end).includes("--help");
}

function tell(error: unknown, name: string, { io, shell }: Context): number {
  if (error instanceof UsageError) {
    io.err(error.message);
    io.err(`See \`${invocation(name, shell)} --help\`.`);
    return MISUSED;
  }
  io.err(sentenceOf(error));
  return FAILED;
}

/**
 * An error as a user may see it. Eddy's own say what is wrong and hold no body or token; of others only kind and place are shown, for their text could quote
 * anything.
 */
export function sentenceOf(error: unknown): string {
  if (error instanceof BrokerError || error instanceof EnqueueError) return error.message;
  if ((error instanceof TypeError || error instanceof RangeError) && error.message.startsWith("Cannot "))
    return error.message;
  if (!(error instanceof Error)) return `Failed: a ${typeof error} was thrown`;
  // Deno's: it names the file, variable or host that a permission is missing for.
  if (error.name === "NotCapable") return `Cannot go on without a permission: ${error.message}`;
  const stack = error.stack ?? "";
  const message = stack.indexOf(error.message);
  const places = stack
    .slice(message < 0 ? 0 : message + error.message.length)
    .split("\n")
    .filter((line) => line.trim().startsWith("at "));
  return [`Failed: ${error.name}, a fault of the program`, ...places.slice(0, 8)].join("\n");
}
