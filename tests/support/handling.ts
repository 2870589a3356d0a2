/**
 * Runs handlers over jobs and tells what became of them; what handlers of tests do.
 *
 * @module
 */
import type { Job } from "../../src/job.ts";
import type { HandlerOptions } from "../../src/options.ts";
import { type Handler, type QueueOptions, queue } from "../../src/queue.ts";
import { defineWorker } from "../../src/worker.ts";
import { World } from "./world.ts";

export interface Handled {
  readonly world: World;
  readonly verdicts: readonly string[];
  readonly dead: readonly (string | undefined)[];
  readonly started: number;
}

/** Runs handlers over jobs with these bodies until the queue is empty, and tells what became of them. */
export async function run(
  handler: Handler<unknown>,
  options: HandlerOptions = {},
  settings: { bodies?: readonly (string | Uint8Array)[]; queue?: QueueOptions<unknown> } = {},
): Promise<Handled> {
  const world = new World();
  for (const body of settings.bodies ?? ["null"]) await world.add(1, { body });
  const worker = await world.startDefinition(
    defineWorker({
      queues: [queue("work", settings.queue ?? {}).handle(handler, { backoff: () => 10, ...options })],
    }),
  );
  await world.untilEmpty();
  await world.platform.run(worker.stop());
  return {
    world,
    verdicts: world.told("settled").map((one) => one.verdict),
    dead: (await world.peek("dead")).map((one) => one.error),
    started: world.told("started").length,
  };
}

/** Resolves with the reason when a job is aborted. */
export function abortOf(job: Job<unknown>): Promise<unknown> {
  return new Promise((resolve) => {
    job.signal.addEventListener("abort", () => resolve(job.signal.reason));
  });
}

/** A handler that runs until it is aborted, and fails with the reason then. */
export async function heeds(job: Job<unknown>): Promise<never> {
  throw await abortOf(job);
}
