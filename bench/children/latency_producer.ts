/**
 * Enqueues a job now and then, each with the time at which that began.
 *
 * @module
 */
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import { Producer, queue } from "../../src/mod.ts";
import { type BrokerSpec, openBroker } from "../support/brokers.ts";
import { params, tell } from "../support/contender.ts";

export interface ProducerParams {
  readonly broker: BrokerSpec;
  /** One job goes to each, in this order; a queue may stand there often. */
  readonly queues: readonly string[];
  /** The pause before each job, in milliseconds: between the least and the most, at random. */
  readonly gapMs: readonly [least: number, most: number];
}

const { broker: spec, queues, gapMs } = params<ProducerParams>();
const platform = bunPlatform();
const broker = await openBroker(spec, platform);
const producer = new Producer({ broker, platform });
// The connection is there, and the code is warm, before anything is timed.
for (let n = 0; n < 20; n++) await producer.enqueue(queue("latency-warm-up"), { sentAt: 0 });
for (const name of queues) {
  await Bun.sleep(gapMs[0] + Math.random() * (gapMs[1] - gapMs[0]));
  await producer.enqueue(queue<{ sentAt: number }>(name), {
    sentAt: performance.timeOrigin + performance.now(),
  });
}
tell("done");
