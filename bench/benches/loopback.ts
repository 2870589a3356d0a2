/**
 * Jobs that do nothing, as fast as they go, on this machine alone: what each system costs by itself.
 *
 * @module
 */
import type { BullParams } from "../children/bullmq.ts";
import type { BunqueueParams } from "../children/bunqueue.ts";
import type { EddyParams } from "../children/eddy.ts";
import { atLeast, type Bench, type Context } from "../support/bench.ts";
import type { BrokerSpec } from "../support/brokers.ts";
import { runChild } from "../support/child.ts";
import { peer } from "../support/peers.ts";
import { type Runner, race } from "../support/rates.ts";
import { Scratch, startRedisHttp } from "../support/servers.ts";
import { natsLoopback } from "./loopback_nats.ts";

const CONCURRENCIES = [1, 16, 64] as const;

/** @param concurrency as with the others; the prefetch is the default, `auto`. */
function eddy(spec: () => BrokerSpec, jobs: number, concurrency: number): Runner {
  const params = (): EddyParams => ({
    broker: spec(),
    jobs,
    warmUp: Math.min(jobs, 5_000),
    handler: { concurrency },
    jobMs: 0,
  });
  return { jobs, run: () => runChild<{ ms: number }>("eddy.ts", params()) };
}

function bunqueue(jobs: number, concurrency: number, file?: () => string): Runner {
  const params = (): BunqueueParams => ({
    ...(file === undefined ? {} : { file: file() }),
    jobs,
    warmUp: Math.min(jobs, 2_000),
    concurrency,
  });
  return { jobs, run: () => runChild<{ ms: number }>("bunqueue.ts", params()) };
}

async function againstBullmq(context: Context): Promise<void> {
  const redis = await startRedisHttp();
  try {
    for (const concurrency of CONCURRENCIES) {
      context.progress(`redis, concurrency ${concurrency}`);
      const many = concurrency > 1;
      const params: BullParams = {
        port: redis.server.port,
        jobs: context.pick(many ? 50_000 : 15_000, many ? 15_000 : 5_000, 100),
        warmUp: context.pick(2_000, 1_000, 20),
        concurrency,
      };
      const [ours, theirs] = (await race(context.rounds, [
        eddy(
          () => ({ kind: "redis", url: redis.url, token: redis.token }),
          context.pick(many ? 400_000 : 100_000, many ? 100_000 : 30_000, 200),
          concurrency,
        ),
        { jobs: params.jobs, run: () => runChild<{ ms: number }>("bullmq.ts", params) },
      ])) as [number, number];
      const against = `${peer("BullMQ", "bullmq")} on TCP`;
      context.row({
        case: `redis over HTTP, concurrency ${concurrency}`,
        value: ours,
        unit: "jobs/s",
        against: `${against}: ${Math.round(theirs).toLocaleString("en-US")}`,
        ratio: ours / theirs,
        bar: atLeast(ours / theirs, 8, " ×"),
      });
    }
  } finally {
    await redis.stop();
  }
  context.note(
    "redis: one redis-server for both (nothing written to disk, completed jobs removed). Both at the same concurrency, all else default: Eddy's claims then ask for 16 jobs a slot (prefetch auto), BullMQ fetches one job with each it finishes. Eddy has a third process, the gateway (the part of a provider of Redis over HTTP), and all share two cores: BullMQ's two processes have a core each.",
  );
}

async function againstBunqueue(context: Context): Promise<void> {
  const scratch = new Scratch();
  const against = (rate: number) =>
    `${peer("bunqueue", "bunqueue")} embedded: ${Math.round(rate).toLocaleString("en-US")}`;
  try {
    for (const concurrency of CONCURRENCIES) {
      context.progress(`sqlite, concurrency ${concurrency}`);
      const [ours, theirs, durable] = (await race(context.rounds, [
        eddy(
          () => ({ kind: "sqlite", file: scratch.file(), synchronous: "normal" }),
          context.pick(100_000, 30_000, 200),
          concurrency,
        ),
        bunqueue(context.pick(10_000, 4_000, 100), concurrency, () => scratch.file()),
        eddy(
          () => ({ kind: "sqlite", file: scratch.file(), synchronous: "full" }),
          context.pick(100_000, 30_000, 200),
          concurrency,
        ),
      ])) as [number, number, number];
      context.row({
        case: `sqlite (WAL, synchronous=normal), concurrency ${concurrency}`,
        value: ours,
        unit: "jobs/s",
        against: against(theirs),
        ratio: ours / theirs,
        bar: atLeast(ours / theirs, 10, " ×"),
      });
      context.row({
        case: `sqlite (WAL, synchronous=full, the default), concurrency ${concurrency}`,
        value: durable,
        unit: "jobs/s",
        against: against(theirs),
        ratio: durable / theirs,
      });
    }
    for (const concurrency of CONCURRENCIES) {
      context.progress(`memory, concurrency ${concurrency}`);
      const [ours, theirs] = (await race(context.rounds, [
        eddy(() => ({ kind: "memory" }), context.pick(500_000, 200_000, 200), concurrency),
        bunqueue(context.pick(100_000, 30_000, 100), concurrency),
      ])) as [number, number];
      context.row({
        case: `memory, concurrency ${concurrency}`,
        value: ours,
        unit: "jobs/s",
        against: against(theirs),
        ratio: ours / theirs,
        bar: atLeast(ours / theirs, 5, " ×"),
      });
    }
  } finally {
    scratch.remove();
  }
  context.note(
    "sqlite: bunqueue's file is WAL with synchronous=NORMAL, so Eddy is compared at the same; its default, full, stands below (an fsync a transaction).",
  );
}

export const loopback: Bench = {
  name: "loopback",
  title: "no-op jobs a second beside BullMQ, bunqueue and the raw NATS client",
  async run(context) {
    await againstBullmq(context);
    await againstBunqueue(context);
    await natsLoopback(context);
    context.note(
      "Timed from the first handler's call until the broker had confirmed the last job, with the whole backlog there beforehand, after a warm-up in the same process.",
    );
  },
};
