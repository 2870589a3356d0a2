/**
 * From the start of a process to its exit code: what `runtimes/bun/main.ts` and `runtimes/deno/main.ts` share.
 *
 * @module
 */
import process from "node:process";
import { processIo } from "./io.ts";
import { type Commands, runCommand } from "./run.ts";
import type { Shell } from "./shell.ts";

const COMMANDS: Commands = {
  worker: () => import("./commands/worker.ts"),
  enqueue: () => import("./commands/enqueue.ts"),
  drain: () => import("./commands/drain.ts"),
  stats: () => import("./commands/stats.ts"),
  peek: () => import("./commands/peek.ts"),
  dead: () => import("./commands/dead.ts"),
  redrive: () => import("./commands/redrive.ts"),
  pause: () => import("./commands/pause.ts"),
  resume: () => import("./commands/resume.ts"),
  clear: () => import("./commands/clear.ts"),
  demo: () => import("./commands/demo.ts"),
};

/** Runs the command that the process was started for, and ends the process. */
export async function main(shell: Shell): Promise<never> {
  const io = processIo(() => shell.stdin());
  const code = await runCommand(COMMANDS, process.argv.slice(2), {
    shell,
    io,
    platform: shell.platform,
    env: process.env,
  });
  await io.close();
  // A handler that ignored its signal, or a socket nobody closed, must not keep a command alive that is done.
  process.exit(code);
}
