/**
 * Help texts.
 *
 * @module
 */
import { type Command, MISUSED } from "./command.ts";
import type { Flag } from "./flags.ts";
import type { Shell } from "./shell.ts";

/** The commands that package.json has a script for, and deno.json a task; the others are reached through `eddy`. */
const SCRIPTS: ReadonlySet<string> = new Set(["worker", "enqueue", "drain", "stats", "demo"]);

type Words = Pick<Shell, "start">;

/** How people start a command. */
export function invocation(command: string, { start }: Words): string {
  return (SCRIPTS.has(command) ? start.script?.(command) : undefined) ?? `${start.any} ${command}`;
}

const WIDTH = 100;

/** `--help` of one command: every flag with its unit and default. */
export function commandHelp(command: Command, words: Words): string {
  const flags: [string, string][] = Object.entries(command.flags).map(([name, flag]) => [
    `--${name}${valueName(flag)}`,
    flagHelp(flag),
  ]);
  flags.push(["--help, -h", "print this"]);
  const usage = `Usage: ${invocation(command.name, words)} ${command.args === "" ? "" : `${command.args} `}[flags]`;
  // Keys that are numbers stand in their order, whichever way they were added.
  const exits = Object.entries({ ...command.exits, [MISUSED]: "it was called wrongly" });
  return [
    command.summary,
    usage,
    reflowed(command.about.trim()),
    `Exit code:\n${columns(exits)}`,
    reflowed(command.notes.trim()),
    `Flags:\n${columns(flags)}`,
  ]
    .filter((paragraph) => paragraph !== "")
    .join("\n\n");
}

/** The list of commands. */
export function overview(commands: readonly Command[], { start }: Words): string {
  const lines = commands.map((command): [string, string] => [
    `${command.name} ${command.args}`.trim(),
    command.summary,
  ]);
  const also =
    start.script === undefined
      ? ""
      : `, or for ${[...SCRIPTS].join(", ")} just: ${start.script("COMMAND")} [flags]`;
  return `Eddy, a queue worker for the edge.

Usage: ${start.any} COMMAND [flags]${also}

Commands:
${columns(lines)}

Each command has --help (-h); --version prints Eddy's.`;
}

function valueName(flag: Flag): string {
  switch (flag.kind) {
    case "switch":
      return "";
    case "count":
      return " N";
    case "choice":
      return ` ${flag.of.join("|")}`;
    case "text":
    case "list":
      return ` ${flag.value}`;
  }
}

function flagHelp(flag: Flag): string {
  const parts = [flag.help];
  if (flag.kind === "count" && flag.unit !== "") parts.push(`in ${flag.unit}`);
  if (flag.kind === "list") parts.push("may be given several times");
  if ("default" in flag && flag.default !== undefined) parts.push(`default ${flag.default}`);
  return parts.join("; ");
}

function columns(rows: readonly (readonly [string, string])[]): string {
  const left = Math.min(34, Math.max(...rows.map(([name]) => name.length)));
  return rows
    .map(([name, text]) => {
      const lines = wrapped(text, WIDTH - left - 4);
      const head = name.length > left ? `  ${name}\n${" ".repeat(left + 4)}` : `  ${name.padEnd(left)}  `;
      return head + lines.join(`\n${" ".repeat(left + 4)}`);
    })
    .join("\n");
}

/** Fills the lines of each paragraph; lines that begin with spaces stay as they are. */
function reflowed(text: string): string {
  return text
    .split("\n\n")
    .map((paragraph) => {
      const lines: string[] = [];
      let open: string[] = [];
      const close = () => {
        if (open.length > 0) lines.push(...wrapped(open.join(" "), WIDTH));
        open = [];
      };
      for (const line of paragraph.split("\n")) {
        // A heading's colon and an indented line both end what is being filled.
        if (line.startsWith(" ")) {
          close();
          lines.push(line);
        } else open.push(line);
        if (line.endsWith(":")) close();
      }
      close();
      return lines.join("\n");
    })
    .join("\n\n");
}

function wrapped(text: string, width: number): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = lines.at(-1)!;
    if (line !== "" && line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  return lines;
}
