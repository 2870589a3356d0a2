/**
 * What a command is, and the flags that several have.
 *
 * @module
 */
import type { Platform } from "../../src/platform.ts";
import type { Flags, ParsedArgs } from "./flags.ts";
import type { Io } from "./io.ts";
import type { Shell } from "./shell.ts";

/** What a command is given to work with. */
export interface Context {
  readonly shell: Shell;
  readonly io: Io;
  readonly platform: Platform;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Says what standard error is told where a second signal ends the process at once; answers a function that ends it. */
  atSecondSignal(words: () => string): () => void;
}

export interface Command<F extends Flags = Flags> {
  readonly name: string;
  /** What may stand after the name: `"QUEUE [BODY…]"`. */
  readonly args: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** The paragraphs of `--help` that say what it does. */
  readonly about: string;
  /** What each of its exit codes tells but {@linkcode MISUSED}, which every command has. */
  readonly exits: Readonly<Record<string, string>>;
  /** Paragraphs of `--help` behind the exit codes. */
  readonly notes: string;
  readonly flags: F;
  /** Runs it; answers the exit code. What it throws is told and becomes 2 (UsageError) or 1. */
  run(context: Context, args: ParsedArgs<F>): Promise<number>;
}

/** Fixes the flags' types of a command. */
export function defineCommand<const F extends Flags>(command: Command<F>): Command {
  // A command is only ever run with what its own flags were parsed to.
  return command as unknown as Command;
}

/** Exit code of a command that failed. */
export const FAILED = 1;
/** Exit code of a command that was called wrongly. */
export const MISUSED = 2;

/** What {@linkcode FAILED} tells, whatever the command. */
export const FAILED_HELP =
  "the broker failed or was refused, a variable or the worker's file could not be used, or output could not be written";

/** What the codes of a signal tell, for commands that end gracefully on the first. */
export const SIGNAL_EXITS = { "130, 143": "a second SIGINT or SIGTERM ended it at once" } as const;

/** `--broker`. */
export const BROKER_FLAG = {
  kind: "text",
  value: "BROKER",
  help: "which broker; without it EDDY_BROKER, then UPSTASH_REDIS_REST_URL, then sqlite:eddy.sqlite",
} as const;

/** `--json`. */
export const JSON_FLAG = {
  kind: "switch",
  help: "print JSON for programs instead of text for people",
} as const;

/** `--worker` of commands that only look at a worker's definition. */
export const WORKER_FLAG = {
  kind: "text",
  value: "FILE",
  help: "a module whose default export is a worker: its queues and schemas are then known; without it ./worker.ts (.js, .mjs), where there is one",
} as const;

/** `--any-queue` of commands that would else look for a worker in the current folder. */
export const ANY_QUEUE_FLAG = {
  kind: "switch",
  help: "take any queue's name: do not look at ./worker.ts",
} as const;

/** What every help says about brokers. */
export const BROKER_HELP = `Brokers:
  sqlite:FILE           an embedded queue in one file (the default: sqlite:eddy.sqlite in the current folder)
  memory:               nothing is kept; for trying things out within one process
  https://… http://…    Redis over HTTP (Upstash's REST protocol)
  wss://… ws://…        NATS JetStream over WebSocket
Which broker: --broker, else EDDY_BROKER, else UPSTASH_REDIS_REST_URL, else sqlite:eddy.sqlite.
Its token: EDDY_BROKER_TOKEN; for UPSTASH_REDIS_REST_URL it is UPSTASH_REDIS_REST_TOKEN, else EDDY_BROKER_TOKEN.
NATS: EDDY_NATS_CREDS (a credentials file), else EDDY_BROKER_NKEY_SEED (an nkey's seed), else EDDY_NATS_USER and EDDY_NATS_PASSWORD, else EDDY_BROKER_TOKEN, else nothing.
A token is never sent to a URL that it was not set for, and belongs into the environment, never into the URL.`;
