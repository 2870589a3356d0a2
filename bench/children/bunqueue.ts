/**
 * bunqueue at work within its worker's process, measured as Eddy is: from the first processor's call until the last job was
 * confirmed.
 *
 * @module
 */
import { Queue, Worker } from "bunqueue/client";
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
  for (let at = 0; at < count; at += 1000) {
    await queue.addBulk(
      Array.from({ length: Math.min(1000, count - at) }, (_, n) => ({
        name: "job",
        data: { n: at + n },
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
    { ...place, concurrency, autorun: false },
  );
  worker.on("completed", () => {
    left -= 1;
    if (left === 0) done.resolve();
  });
  worker.on("error", (error) => done.reject(error));
  worker.run();
  await done.promise;
  const ms = performance.now() - firstAt;
  await worker.close();
  return ms;
}

if (warmUp > 0) await run("warm", warmUp);
Bun.gc(true);
tell({ ms: await run("work", jobs) });
