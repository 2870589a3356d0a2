/**
 * BullMQ at work, measured as Eddy is: from the first processor's call until Redis had confirmed the last job.
 *
 * @module
 */
import { Queue, Worker } from "bullmq";
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
  for (let at = 0; at < count; at += 1000) {
    await queue.addBulk(
      Array.from({ length: Math.min(1000, count - at) }, (_, n) => ({
        name: "job",
        data: { n: at + n },
        // An acked job is gone, as with the others.
        opts: { removeOnComplete: true },
      })),
    );
  }
  let firstAt = 0;
  let left = count;
  const done = Promise.withResolvers<void>();
  const worker = new Worker(
    name,
    async () => {
      if (firstAt === 0) firstAt = performance.now();
    },
    { connection, concurrency, autorun: false },
  );
  worker.on("completed", () => {
    left -= 1;
    if (left === 0) done.resolve();
  });
  worker.on("error", (error) => done.reject(error));
  const running = worker.run();
  await done.promise;
  const ms = performance.now() - firstAt;
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
