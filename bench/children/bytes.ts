/**
 * How many bytes a job makes the loop allocate. Runs with the garbage collector off (`BUN_JSC_useGC=0`), so that the heap's growth is
 * all that was allocated.
 *
 * @module
 */
import { MemoryBroker } from "../../adapters/memory.ts";
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import { defineWorker, queue, startWorker } from "../../src/mod.ts";
import { fill, openQueue } from "../support/brokers.ts";
import { params, tell } from "../support/contender.ts";

const { jobs } = params<{ jobs: number }>();
const platform = bunPlatform();
const broker = new MemoryBroker({ now: () => platform.now(), wallNow: () => platform.wallNow() });

async function run(name: string, count: number): Promise<number> {
  await fill(await openQueue(broker, name), count);
  const before = process.memoryUsage().heapUsed;
  const worker = await startWorker(defineWorker({ queues: [queue(name).handle(async () => {})] }), {
    broker,
    platform,
  });
  while ((worker.stats()[0]?.acked ?? 0) < count) await new Promise<void>((resolve) => setImmediate(resolve));
  const after = process.memoryUsage().heapUsed;
  await worker.stop();
  return after - before;
}

await run("warm", Math.min(jobs, 2_000));
tell({ bytes: await run("work", jobs) });
