/**
 * BullMQ at work, measured as Eddy is: from the first processor's call until Redis had confirmed the last job.
 *
 * @module
 */
import { Queue, Worker } from "bullmq";
import { addJobs, stopwatch } from "../support/bulk_work.ts";
import { params, tell } from "../support/contender.ts";

export interface BullParams {
  readonly port: number;
  readonly jobs: number;
  readonly warmUp: number;
  readonly concurrency: number;
}

const { port, jobs, warmUp, concurrency } = params<BullParams>();
const connection = { host: "127.0.0.1", port, maxRetriesPerRequest: null };

async function run(name: string, count: number): Promise<number> {
  const queue = new Queue(name, { connection });
  await addJobs(queue, count);
  const watch = stopwatch(count);
  const worker = new Worker(name, watch.process, { connection, concurrency, autorun: false });
  worker.on("completed", watch.completed);
  worker.on("error", watch.failed);
  const running = worker.run();
  const ms = await watch.ms;
  await worker.close();
  await running;
  await queue.obliterate({ force: true });
  await queue.close();
  return ms;
}

const unique = crypto.randomUUID();
if (warmUp > 0) await run(`warm-${unique}`, warmUp);
Bun.gc(true);
tell({ ms: await run(`work-${unique}`, jobs) });
