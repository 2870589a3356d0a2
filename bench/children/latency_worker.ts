/**
 * A worker with nothing to do, that notes how old each job is when its handler starts.
 *
 * @module
 */
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import { defineWorker, queue, startWorker } from "../../src/mod.ts";
import { type BrokerSpec, openBroker } from "../support/brokers.ts";
import { hear, params, tell } from "../support/contender.ts";
import { type Production, produce, type Timed, wallMs } from "../support/produce.ts";

export interface LatencyParams {
  readonly broker: BrokerSpec;
  readonly queues: readonly string[];
  /** What this process enqueues by itself, over the same connection. */
  readonly own?: Production;
}

const { broker: spec, queues, own } = params<LatencyParams>();
const platform = bunPlatform();
const broker = await openBroker(spec, platform);
const ages: number[] = [];
const idle = new Set<string>();
const allIdle = Promise.withResolvers<void>();
const worker = await startWorker(
  defineWorker({
    queues: queues.map((name) =>
      queue<Timed>(name).handle((job) => {
        ages.push(wallMs() - job.body.sentAt);
      }),
    ),
  }),
  {
    broker,
    platform,
    on(event) {
      if (event.type !== "idle") return;
      idle.add(event.queue);
      if (idle.size === queues.length) allIdle.resolve();
    },
  },
);
// An engine that holds claims open tells nothing: its claims are there a moment after the start.
if (broker.capabilities.has("waits")) await Bun.sleep(500);
else await allIdle.promise;
if (own !== undefined) await produce(broker, platform, own);
tell("idle");
for (;;) {
  const expected = await hear<number>();
  while (ages.length < expected) await Bun.sleep(5);
  tell(ages);
  await worker.stop();
  await broker.close();
}
