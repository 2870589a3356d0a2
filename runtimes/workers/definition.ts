/**
 * Where a worker's definition comes from.
 *
 * @module
 */
import type { WorkerDefinition } from "../../src/worker.ts";

/** A worker, or a function that makes one of the bindings: for handlers that need them. The very thing a worker's file exports by default on any runtime. */
export type DefinitionSource<Env> = WorkerDefinition | ((env: Env) => WorkerDefinition);

/**
 * The worker for these bindings.
 *
 * @throws {TypeError} when it is none.
 */
export function definitionOf<Env>(source: DefinitionSource<Env>, env: Env): WorkerDefinition {
  const definition = typeof source === "function" ? source(env) : source;
  if (definition?.kind === "eddy-worker") return definition;
  throw new TypeError(
    "Cannot run the worker: definition is none; give what defineWorker answers, or a function that answers it at once",
  );
}
