/**
 * Enqueues a job now and then, each with the time at which that began.
 *
 * @module
 */
import { type Broker, type Platform, Producer, queue } from "../../src/mod.ts";

/** What a job carries whose age matters: by one clock for all processes, the wall's, as the monotonic one had it when each began. */
export interface Timed {
  readonly sentAt: number;
}

export function wallMs(): number {
  return performance.timeOrigin + performance.now();
}

export interface Production {
  /** One job goes to each, in this order; a queue may stand there often. */
  readonly queues: readonly string[];
  /** The pause before each job, in milliseconds: between the least and the most, at random. */
  readonly gapMs: readonly [least: number, most: number];
}

export async function produce(
  broker: Broker,
  platform: Platform,
  { queues, gapMs }: Production,
): Promise<void> {
  const producer = new Producer({ broker, platform });
  // The connection is there, and the code is warm, before anything is timed.
  for (let n = 0; n < 20; n++) await producer.enqueue(queue<Timed>("latency-warm-up"), { sentAt: 0 });
  for (const name of queues) {
    await Bun.sleep(gapMs[0] + Math.random() * (gapMs[1] - gapMs[0]));
    await producer.enqueue(queue<Timed>(name), { sentAt: wallMs() });
  }
}
