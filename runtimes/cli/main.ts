/**
 * From the start of a process to its exit code: what `runtimes/bun/main.ts` and `runtimes/deno/main.ts` share.
 *
 * @module
 */
import process from "node:process";
import type { Platform } from "../../src/platform.ts";
import { FAILED } from "./command.ts";
import { EndGuard } from "./end_guard.ts";
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

/** How long a process that was told to stop waits for whoever reads its output, in milliseconds. */
const LAST_WORDS_MS = 1_000;

/** Runs the command that the process was started for, and ends the process. */
export async function main(shell: Shell): Promise<never> {
  const guard: EndGuard = new EndGuard();
  const io = processIo(() => shell.stdin());
  let stopping = false;
  const platform: Platform = {
    ...shell.platform,
    onStop: (fn) =>
      shell.platform.onStop((reason) => {
        stopping = true;
        fn(reason);
      }),
  };
  const context = {
    shell: { ...shell, platform },
    io,
    platform,
    env: process.env,
    atSecondSignal: (words: () => string) => guard.atSecondSignal(words),
  };
  const code = await runCommand(COMMANDS, process.argv.slice(2), context);
  // Without a bound a reader as slow as a person at a pager loses nothing; but a reader that reads no more must not undo a stop.
  const written = io.close();
  const whole = await (stopping ? Promise.race([written, passed(platform, LAST_WORDS_MS)]) : written);
  // A handler that ignored its signal, or a socket nobody closed, must not keep a command alive that is done.
  guard.exit(code === 0 && !whole ? FAILED : code);
}

/** Resolves with true once the time is over. */
function passed(platform: Platform, ms: number): Promise<true> {
  return new Promise((resolve) => {
    platform.setTimer(ms, () => resolve(true));
  });
}
