/**
 * A worker with nothing to do, that notes how old each job is when its handler starts.
 *
 * @module
 */
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import { defineWorker, queue, startWorker } from "../../src/mod.ts";
import { type BrokerSpec, openBroker } from "../support/brokers.ts";
import { hear, params, tell } from "../support/contender.ts";

export interface LatencyParams {
  readonly broker: BrokerSpec;
  readonly queues: readonly string[];
}

const { broker: spec, queues } = params<LatencyParams>();
const platform = bunPlatform();
const broker = await openBroker(spec, platform);
const ages: number[] = [];
const idle = new Set<string>();
const allIdle = Promise.withResolvers<void>();
const worker = await startWorker(
  defineWorker({
    queues: queues.map((name) =>
      queue<{ sentAt: number }>(name).handle((job) => {
        // One clock for all processes: the wall's, as the monotonic one had it when each began.
        ages.push(performance.timeOrigin + performance.now() - job.body.sentAt);
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
tell("idle");
for (;;) {
  const expected = await hear<number>();
  while (ages.length < expected) await Bun.sleep(5);
  tell(ages);
  await worker.stop();
  await broker.close();
}
