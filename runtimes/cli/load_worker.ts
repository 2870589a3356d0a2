/**
 * Loading the module that defines a worker.
 *
 * @module
 */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { WorkerDefinition } from "../../src/worker.ts";
import { UsageError } from "./flags.ts";

/** Where a worker is looked for when no file is named, in the current folder. */
export const WORKER_FILES = ["worker.ts", "worker.js", "worker.mjs"] as const;

/** The example that comes with Eddy, for a folder without a worker. */
const EXAMPLE = fileURLToPath(new URL("../../examples/worker.ts", import.meta.url));

/** What names a broker or is a URL of any kind. */
const BROKER_LIKE = /:\/\/|^(?:https?|wss?|rediss?|nats|sqlite|memory):/i;

export interface LoadedWorker {
  readonly definition: WorkerDefinition;
  readonly file: string;
  /** True when no file was named or found, so that the example was taken. */
  readonly isExample: boolean;
}

/**
 * Loads a worker: the file named, else `./worker.ts` (`.js`, `.mjs`), else the example that comes with Eddy. Its default export is a worker's definition, or
 * a function from the environment to one.
 *
 * @throws {UsageError} when the file is not there.
 * @throws {TypeError} when it cannot be loaded or exports no worker.
 */
export async function loadWorker(
  named: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Promise<LoadedWorker> {
  const found = named ?? WORKER_FILES.find((file) => existsSync(file));
  const file = found === undefined ? EXAMPLE : resolve(found);
  const shown = found ?? "examples/worker.ts";
  // A URL may hold credentials, so nothing of it is printed.
  if (!existsSync(file) && BROKER_LIKE.test(shown)) {
    throw new UsageError(
      "Cannot load the worker: FILE looks like a broker's URL; name the worker's file, and the broker with --broker",
    );
  }
  if (!existsSync(file)) throw new UsageError(`Cannot load the worker: ${shown} is not there; name its file`);
  let exported: unknown;
  try {
    const module = (await import(pathToFileURL(file).href)) as { default?: unknown };
    exported = typeof module.default === "function" ? await module.default(env) : module.default;
  } catch (error) {
    throw new TypeError(`Cannot load the worker: ${shown} failed with ${describe(error)}; mend it`, {
      cause: error,
    });
  }
  if (!isDefinition(exported)) {
    throw new TypeError(
      `Cannot load the worker: the default export of ${shown} is no worker; write \`export default defineWorker({ … })\``,
    );
  }
  return { definition: exported, file: shown, isExample: found === undefined };
}

function isDefinition(value: unknown): value is WorkerDefinition {
  return typeof value === "object" && value !== null && (value as { kind?: unknown }).kind === "eddy-worker";
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : `a ${typeof error}`;
}
