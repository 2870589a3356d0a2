/**
 * bunqueue at work within its worker's process, measured as Eddy is: from the first processor's call until the last job was
 * confirmed.
 *
 * @module
 */
import { Queue, Worker } from "bunqueue/client";
import { addJobs, stopwatch } from "../support/bulk_work.ts";
import { params, tell } from "../support/contender.ts";

export interface BunqueueParams {
  /** Its database; without one it keeps jobs in memory. */
  readonly file?: string;
  readonly jobs: number;
  readonly warmUp: number;
  readonly concurrency: number;
}

const { file, jobs, warmUp, concurrency } = params<BunqueueParams>();
const place = { embedded: true, ...(file === undefined ? {} : { dataPath: file }) };

async function run(name: string, count: number): Promise<number> {
  const queue = new Queue(name, place);
  await addJobs(queue, count);
  const watch = stopwatch(count);
  const worker = new Worker(name, watch.process, { ...place, concurrency, autorun: false });
  worker.on("completed", watch.completed);
  worker.on("error", watch.failed);
  worker.run();
  const ms = await watch.ms;
  await worker.close();
  return ms;
}

if (warmUp > 0) await run("warm", warmUp);
Bun.gc(true);
tell({ ms: await run("work", jobs) });
