#!/usr/bin/env bun
/**
 * Eddy's commands on Bun: `bun runtimes/bun/main.ts COMMAND`.
 *
 * @module
 */
import { processIo } from "./cli/io.ts";
import { type Commands, runCommand } from "./cli/run.ts";
import { bunPlatform } from "./platform.ts";

const commands: Commands = {
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

const io = processIo();
const code = await runCommand(commands, process.argv.slice(2), {
  io,
  platform: bunPlatform(),
  env: process.env,
});
await io.close();
// A handler that ignored its signal, or a socket nobody closed, must not keep a command alive that is done.
process.exit(code);
