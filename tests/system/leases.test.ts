/** Handlers that outlast their lease, on real brokers and a real clock. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunPlatform, openBroker } from "../../runtimes/bun/mod.ts";
import {
  type Broker,
  defineWorker,
  type EddyEvent,
  LeaseLostError,
  Producer,
  queue,
  startWorker,
} from "../../src/mod.ts";
import { type RedisOverHttp, startRedisOverHttp } from "../support/gateway.ts";
import { HttpProxy } from "../support/http_proxy.ts";

const platform = bunPlatform();
let directory: string;
let redis: RedisOverHttp;
let front: HttpProxy;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "eddy-leases-"));
  redis = await startRedisOverHttp();
  front = await HttpProxy.start(redis.gateway.url);
});
afterAll(async () => {
  await front.stop();
  await redis.stop();
  await rm(directory, { recursive: true });
});

async function longJobs(
  broker: Broker,
): Promise<{ starts: number; renewals: number; lost: number; sizes: unknown }> {
  const JOBS = 8;
  const jobs = queue("long");
  await new Producer({ broker, platform }).enqueueMany(
    jobs,
    Array.from({ length: JOBS }, (_, n) => ({ body: n })),
  );
  let starts = 0;
  let acks = 0;
  const done = Promise.withResolvers<void>();
  const definition = defineWorker({
    queues: [
      jobs.handle(
        async () => {
          starts += 1;
          await Bun.sleep(5_000);
        },
        { leaseMs: 1_000, prefetch: 4 },
      ),
    ],
  });
  const worker = await startWorker(definition, {
    broker,
    platform,
    on: (event) => {
      if (event.type === "settled" && event.verdict === "ack") {
        acks += 1;
        if (acks === JOBS) done.resolve();
      }
    },
  });
  await done.promise;
  const [stats] = worker.stats();
  await worker.stop();
  const inspected = broker.queue("long", definition.queues[0]?.options.settings as never);
  await inspected.open();
  const sizes = await inspected.sizes?.();
  return { starts, renewals: stats?.renewals ?? 0, lost: stats?.lost ?? -1, sizes };
}

describe("8 jobs of 5 s on one slot, prefetch 4, under a lease of 1 s", () => {
  test("each runs once, on sqlite and on Redis side by side", async () => {
    const sqlite = await openBroker({ kind: "sqlite", file: join(directory, "long.sqlite") }, platform);
    const overHttp = redis.connect();
    const results = await Promise.all([longJobs(sqlite), longJobs(overHttp)]);
    for (const [index, name] of ["sqlite", "redis"].entries()) {
      const { starts, renewals, lost, sizes } = results[index] as (typeof results)[number];
      console.log(`${name}: 8 jobs of 5 s under a lease of 1 s: ${starts} starts, ${renewals} renewals`);
      expect({ starts, lost }).toEqual({ starts: 8, lost: 0 });
      expect(sizes).toEqual({ ready: 0, delayed: 0, held: 0, dead: 0, paused: false });
      // 40 s at a third of a second each make some 120 where none is late.
      expect(renewals).toBeGreaterThan(40);
    }
    await sqlite.close();
    await overHttp.close();
  }, 120_000);
});

test("when renewals fail, every handler is told before the lease ends at the broker", async () => {
  const jobs = queue("cut-off");
  const broker = redis.connect({ url: front.url });
  await new Producer({ broker, platform }).enqueueMany(
    jobs,
    Array.from({ length: 6 }, (_, n) => ({ body: n })),
  );
  const LEASE_MS = 1_000;
  const aborted: { at: number; reason: unknown }[] = [];
  const running = Promise.withResolvers<void>();
  const allAborted = Promise.withResolvers<void>();
  let starts = 0;
  const events: EddyEvent[] = [];
  const worker = await startWorker(
    defineWorker({
      graceMs: 0,
      abortWaitMs: 0,
      settleWaitMs: 0,
      queues: [
        jobs.handle(
          async (job) => {
            starts += 1;
            if (starts === 3) running.resolve();
            await new Promise<void>((resolve) => {
              job.signal.addEventListener("abort", () => {
                aborted.push({ at: Date.now(), reason: job.signal.reason });
                if (aborted.length === 3) allAborted.resolve();
                resolve();
              });
            });
          },
          { leaseMs: LEASE_MS, prefetch: 6, concurrency: 3 },
        ),
      ],
    }),
    { broker, platform, on: (event) => events.push(event) },
  );
  await running.promise;
  front.script = () => ({ kind: "status", status: 502 });
  // Redis itself knows when the lease ends.
  const [leaseId, deadline] = (await redis.server.command(
    "ZRANGE",
    "eddy:{cut-off}:leases",
    "0",
    "-1",
    "WITHSCORES",
  )) as string[];
  await allAborted.promise;
  expect(aborted.length).toBe(3);
  for (const { at, reason } of aborted) {
    expect(reason).toBeInstanceOf(LeaseLostError);
    expect(at).toBeLessThan(Number(deadline));
  }
  expect(String(leaseId).length).toBeGreaterThan(0);
  // The three that waited were never started, and no verdict went out.
  expect(starts).toBe(3);
  expect(events.filter((event) => event.type === "lost").length).toBe(6);
  expect(events.filter((event) => event.type === "settled").length).toBe(0);
  await worker.stop();
  await broker.close();
}, 30_000);
