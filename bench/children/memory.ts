/**
 * Whether a worker's memory grows with the jobs it ran: feeds it some at a time, and looks at the heap now and then.
 *
 * @module
 */
import { MemoryBroker } from "../../adapters/memory.ts";
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import { defineWorker, queue, startWorker } from "../../src/mod.ts";
import { fill, openQueue } from "../support/brokers.ts";
import { params, tell } from "../support/contender.ts";

export interface MemoryResult {
  /** After a collection, in bytes: when a tenth of the jobs had run, and when all had. */
  readonly heapEarly: number;
  readonly heapLate: number;
  readonly rssEarly: number;
  readonly rssLate: number;
}

const { jobs } = params<{ jobs: number }>();
const platform = bunPlatform();
const broker = new MemoryBroker({ now: () => platform.now(), wallNow: () => platform.wallNow() });
const feed = await openQueue(broker, "work");
const worker = await startWorker(defineWorker({ queues: [queue("work").handle(async () => {})] }), {
  broker,
  platform,
});
const part = Math.ceil(jobs / 50);

function look(): { readonly heap: number; readonly rss: number } {
  Bun.gc(true);
  const { heapUsed, rss } = process.memoryUsage();
  return { heap: heapUsed, rss };
}

let early = look();
let fed = 0;
while (fed < jobs) {
  await fill(feed, part);
  fed += part;
  while ((worker.stats()[0]?.acked ?? 0) < fed) await new Promise<void>((resolve) => setImmediate(resolve));
  if (fed === part * 5) early = look();
}
const late = look();
await worker.stop();
tell({
  heapEarly: early.heap,
  heapLate: late.heap,
  rssEarly: early.rss,
  rssLate: late.rss,
} satisfies MemoryResult);
