/**
 * An idle worker: how long from the call that enqueues a job, in another process, until its handler starts.
 *
 * @module
 */

import { startNats } from "../../tests/support/nats_server.ts";
import type { ProducerParams } from "../children/latency_producer.ts";
import type { LatencyParams } from "../children/latency_worker.ts";
import { atMost, type Bench, type Context } from "../support/bench.ts";
import type { BrokerSpec } from "../support/brokers.ts";
import { Child, runChild } from "../support/child.ts";
import { quantile } from "../support/figures.ts";
import { Scratch, startRedisHttp } from "../support/servers.ts";

const P50_MS = 5;
const P99_MS = 25;

/** How long the worker has had nothing to do when a job comes, at least and at most, in milliseconds. */
const GAP_MS = [20, 60] as const;

/** @param producer where another process is to enqueue; without it the worker's does. */
async function agesOf(
  worker: BrokerSpec,
  producer: BrokerSpec | undefined,
  queues: readonly string[],
  order: readonly string[],
  gapMs: readonly [number, number],
): Promise<number[]> {
  const own = producer === undefined ? { own: { queues: order, gapMs } } : {};
  const child = new Child("latency_worker.ts", { broker: worker, queues, ...own } satisfies LatencyParams);
  try {
    await child.next();
    if (producer !== undefined)
      await runChild("latency_producer.ts", {
        broker: producer,
        queues: order,
        gapMs,
      } satisfies ProducerParams);
    child.tell(order.length);
    return await child.next<number[]>();
  } finally {
    await child.end();
  }
}

function report(context: Context, name: string, ages: readonly number[], barred: boolean): void {
  const p50 = quantile(ages, 0.5);
  const p99 = quantile(ages, 0.99);
  context.row({
    case: `${name}, p50 of ${ages.length}`,
    value: p50,
    unit: "ms",
    ...(barred ? { bar: atMost(p50, P50_MS, " ms") } : {}),
  });
  context.row({
    case: `${name}, p99`,
    value: p99,
    unit: "ms",
    ...(barred ? { bar: atMost(p99, P99_MS, " ms") } : {}),
  });
}

/** One queue that gets a job now and then. */
async function oneQueue(context: Context, name: string, spec: BrokerSpec, apart = true): Promise<void> {
  context.progress(name);
  const queueName = `latency-${crypto.randomUUID()}`;
  const order = Array.from({ length: context.pick(500, 200, 5) }, () => queueName);
  report(context, name, await agesOf(spec, apart ? spec : undefined, [queueName], order, GAP_MS), true);
}

/** Many queues that each have been empty for a while, so that looks are as rare as they get. */
async function polling(context: Context, spec: BrokerSpec & { kind: "redis" }): Promise<void> {
  context.progress("redis, polling");
  const queues = Array.from({ length: context.pick(100, 40, 2) }, () => `latency-${crypto.randomUUID()}`);
  const gapMs = context.pick([100, 500], [100, 500], [10, 20]) as [number, number];
  const ages = await agesOf({ ...spec, wake: false }, spec, queues, queues, gapMs);
  report(context, "redis, polling every 50 ms to 5 s", ages, false);
}

export const latency: Bench = {
  name: "latency",
  title: "an idle worker: enqueue in one process to handler start in another, p50 and p99",
  async run(context) {
    const scratch = new Scratch();
    const redis = await startRedisHttp();
    const spec = { kind: "redis", url: redis.url, token: redis.token } as const;
    try {
      await oneQueue(context, "redis, woken by subscription", spec);
      await polling(context, spec);
      const sqlite = (): BrokerSpec => ({ kind: "sqlite", file: scratch.file(), synchronous: "full" });
      await oneQueue(context, "sqlite, from another process", sqlite());
      await oneQueue(context, "sqlite, from the same process", sqlite(), false);
    } finally {
      await redis.stop();
      scratch.remove();
    }
    const server = await startNats();
    try {
      await oneQueue(context, "nats", { kind: "nats", url: server.url });
    } finally {
      await server.stop();
    }
    context.note(
      `Jobs come ${GAP_MS[0]} to ${GAP_MS[1]} ms after the last one; with polling each to a queue that was empty since the start. The time includes the enqueue's own request.`,
    );
  },
};
