/** How many requests and scripts the worker needs on Redis over HTTP, counted at the gateway and by Redis itself. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import { defineWorker, Producer, queue, startWorker } from "../../src/mod.ts";
import { type RedisOverHttp, startRedisOverHttp } from "../support/gateway.ts";

const platform = bunPlatform();
let redis: RedisOverHttp;

beforeAll(async () => {
  redis = await startRedisOverHttp();
});
afterAll(async () => {
  await redis.stop();
});

/** Calls of one Redis command since the last reset of its statistics. */
async function calls(command: string): Promise<number> {
  const text = String(await redis.server.command("INFO", "commandstats"));
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(text)?.[1] ?? 0);
}

test("instant jobs in batches of 16, all acked: one request a batch", async () => {
  const JOBS = 1_600;
  const jobs = queue("instant");
  const producer = redis.connect();
  await new Producer({ broker: producer, platform }).enqueueMany(
    jobs,
    Array.from({ length: JOBS }, (_, n) => ({ body: n })),
  );
  const broker = redis.connect();
  let ran = 0;
  let settled = 0;
  const done = Promise.withResolvers<void>();
  redis.gateway.resetCounts();
  await redis.server.command("CONFIG", "RESETSTAT");
  const claims: number[] = [];
  const worker = await startWorker(
    defineWorker({
      queues: [
        jobs.handle(
          () => {
            ran += 1;
          },
          { prefetch: 16 },
        ),
      ],
    }),
    {
      broker,
      platform,
      on: (event) => {
        if (event.type === "claimed" && event.got > 0) claims.push(event.got);
        if (event.type === "settled") {
          settled += 1;
          if (settled === JOBS) done.resolve();
        }
      },
    },
  );
  await done.promise;
  const { requests } = redis.gateway.counts;
  const scripts = (await calls("evalsha")) + (await calls("eval"));
  await worker.stop();
  await broker.close();
  await producer.close();
  expect(ran).toBe(JOBS);
  expect(claims).toEqual(Array.from({ length: JOBS / 16 }, () => 16));
  console.log(
    `${JOBS} jobs: ${requests} requests (${(requests / JOBS).toFixed(4)} a job), ${scripts} scripts (${(scripts / claims.length).toFixed(3)} a batch)`,
  );
  // 100 exchanges, one more that brings the last acks, opening the queue and its guards, the watch.
  expect(requests / JOBS).toBeLessThanOrEqual(0.07);
  expect(scripts / claims.length).toBeLessThanOrEqual(1.1);
});
