/**
 * Loading the module that defines a worker.
 *
 * @module
 */
import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { kindOf } from "../../src/known_fields.ts";
import { asError } from "../../src/requests.ts";
import type { WorkerDefinition } from "../../src/worker.ts";
import { inCheckout } from "./checkout.ts";
import type { Context } from "./command.ts";
import { UsageError } from "./flags.ts";
import { printable } from "./printable.ts";
import { StoppedError } from "./stopped.ts";

/** Where a worker is looked for when no file is named, in the current folder. */
export const WORKER_FILES = ["worker.ts", "worker.js", "worker.mjs"] as const;

/** The example that comes with Eddy, for its checkout alone: anywhere else it would ack real jobs of a queue that has its name. */
const EXAMPLE = fileURLToPath(new URL("../../examples/worker.ts", import.meta.url));

/** What names a broker or is a URL of any kind. */
const BROKER_LIKE = /:\/\/|^(?:https?|wss?|rediss?|nats|sqlite|memory):/i;

export interface LoadedWorker {
  readonly definition: WorkerDefinition;
  readonly file: string;
  /** True when no file was named or found, so that the example was taken. */
  readonly isExample: boolean;
}

/** What names a worker's file on a command line: an argument, or a flag. */
export type NamedBy = "FILE" | "--worker";

/** How long a worker's module may take to load before it is said what is awaited, in milliseconds. */
const SLOW_MS = 5_000;

/**
 * Loads a worker: the file named, else `./worker.ts` (`.js`, `.mjs`), else, in Eddy's own checkout, its example. Its default export is a worker's
 * definition, or a function from the environment to one. Where that takes long, standard error is told what is awaited.
 *
 * @param namedBy what names the file, for messages.
 * @throws {UsageError} when the file is not there or is a folder, or none is named and there is none.
 * @throws {TypeError} when it cannot be loaded or exports no worker.
 * @throws {StoppedError} when it took long and a signal came.
 */
export async function loadWorker(
  named: string | undefined,
  context: Pick<Context, "env" | "platform" | "io">,
  namedBy: NamedBy = "FILE",
): Promise<LoadedWorker> {
  const found = named ?? WORKER_FILES.find((file) => existsSync(file));
  const nameIt = namedBy === "FILE" ? "name its file" : `name its file with ${namedBy}`;
  if (found === undefined && !inCheckout()) {
    throw new UsageError(`Cannot find the worker: there is no ./worker.ts; ${nameIt}`);
  }
  const file = found === undefined ? EXAMPLE : resolve(found);
  const shown = found ?? "examples/worker.ts";
  // A URL may hold credentials, so nothing of it is printed.
  if (!existsSync(file) && BROKER_LIKE.test(shown)) {
    throw new UsageError(
      `Cannot load the worker: ${namedBy} looks like a broker's URL; name the worker's file, and the broker with --broker`,
    );
  }
  const unfit = whyNoFile(file, shown);
  if (unfit !== undefined)
    throw new UsageError(`Cannot load the worker: ${unfit.is}; ${nameIt}${unfit.hint}`);
  let definition: WorkerDefinition | undefined;
  try {
    const exported = await loadedUnlessStopped(exportOf(file, context.env), shown, context);
    if (isDefinition(exported)) definition = exported;
  } catch (thrown) {
    const error = asError(thrown);
    if (error instanceof StoppedError) throw error;
    const told = describe(thrown);
    // Eddy's own errors say themselves what to do.
    const mend = /^\w*Error: Cannot .+; /s.test(told) ? "" : "; mend it";
    throw new TypeError(`Cannot load the worker: ${shown} failed with ${told}${mend}`, { cause: error });
  }
  if (definition === undefined) {
    throw new TypeError(
      `Cannot load the worker: the default export of ${shown} is no worker; write \`export default defineWorker({ … })\``,
    );
  }
  return { definition, file: shown, isExample: found === undefined };
}

/** What stands where a worker's file should, if it is none. */
function whyNoFile(file: string, shown: string): { readonly is: string; readonly hint: string } | undefined {
  if (shown === "") return { is: "the name of its file is empty", hint: "" };
  if (!existsSync(file)) return { is: `${shown} is not there`, hint: "" };
  const found = statSync(file);
  if (found.isFile()) return undefined;
  if (!found.isDirectory()) return { is: `${shown} is no file that could be loaded`, hint: "" };
  const inside = WORKER_FILES.map((name) => join(shown, name)).find((path) => existsSync(path));
  return { is: `${shown} is a folder`, hint: inside === undefined ? "" : `, as in ${inside}` };
}

async function exportOf(file: string, env: Context["env"]): Promise<unknown> {
  const module = (await import(pathToFileURL(file).href)) as { default?: unknown };
  return typeof module.default === "function" ? await module.default(env) : module.default;
}

/** Waits for what a module exports; after a while it says so, and from then on a stop signal ends the wait. */
async function loadedUnlessStopped<T>(
  loading: Promise<T>,
  shown: string,
  { platform, io }: Pick<Context, "platform" | "io">,
): Promise<T> {
  let forget = () => {};
  // A module that waits for what never comes has nothing else that keeps the process alive.
  platform.keepAlive(loading);
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  // Not earlier: until the timer fires the module may be computing, and only the signal's default ends that.
  const cancel = platform.setTimer(SLOW_MS, () => {
    forget = platform.onStop((reason) =>
      reject(new StoppedError(reason, `while ${shown} was still being loaded`)),
    );
    io.err(
      printable(
        `Still loading ${shown} after ${SLOW_MS / 1_000} s: it awaits something at its top level, or in its default function, that has not come`,
      ),
    );
  });
  try {
    return await Promise.race([loading, stopped]);
  } finally {
    cancel();
    forget();
  }
}

function isDefinition(value: unknown): value is WorkerDefinition {
  return typeof value === "object" && value !== null && (value as { kind?: unknown }).kind === "eddy-worker";
}

/** What a module failed with, and where: the compiler's complaints carry their place beside the message. Never throws, whatever it is. */
function describe(thrown: unknown): string {
  try {
    return toldOf(thrown);
  } catch {
    return "something that cannot be read";
  }
}

function toldOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) {
    const more = error.errors.length - 1;
    const first = describe(error.errors[0]);
    return more === 0 ? first : `${first} (and ${more} more ${more === 1 ? "error" : "errors"})`;
  }
  if (!(error instanceof Error)) return kindOf(error);
  return `${error.name}: ${error.message}${placeOf(error)}`;
}

function placeOf(error: Error): string {
  const { position } = error as { position?: { file?: unknown; line?: unknown; column?: unknown } | null };
  if (typeof position?.file !== "string" || typeof position.line !== "number") return "";
  return ` at ${position.file}:${position.line}:${Number(position.column)}`;
}
