/** The least budget of requests a drain takes, on Redis over HTTP whose scripts are forgotten before each run, counted at the gateway. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import { defineWorker, drain, Producer, queue } from "../../src/mod.ts";
import { type RedisOverHttp, startRedisOverHttp } from "../support/gateway.ts";

const platform = bunPlatform();
let redis: RedisOverHttp;

beforeAll(async () => {
  redis = await startRedisOverHttp();
});
afterAll(async () => {
  await redis.stop();
});

test("one below it is refused; with it a job of the last queue is done, and no request more is made", async () => {
  for (const count of [1, 2, 3]) {
    const queues = Array.from({ length: count }, (_, index) => queue(`of-${count}-${index}`));
    const producer = redis.connect();
    await new Producer({ broker: producer, platform }).enqueueMany(queues.at(-1) ?? queue("none"), [
      { body: 1 },
      { body: 2 },
    ]);
    await producer.close();
    const worker = defineWorker({ queues: queues.map((one) => one.handle(() => {})) });
    const run = async (maxRequests: number) => {
      await redis.server.command("SCRIPT", "FLUSH");
      redis.gateway.resetCounts();
      const broker = redis.connect();
      try {
        return await drain(worker, { broker, platform, budget: { maxRequests } });
      } finally {
        await broker.close();
      }
    };
    const refused = await run(count).catch((error: unknown) => String(error));
    expect(refused).toStartWith("RangeError: Cannot drain: maxRequests is");
    const least = Number(/give (\d+) or more/.exec(String(refused))?.[1]);
    await expect(run(least - 1)).rejects.toThrow(`give ${least} or more`);
    const report = await run(least);
    expect(report.acked).toBeGreaterThan(0);
    expect(redis.gateway.counts.requests).toBeLessThanOrEqual(least);
    expect(report).toMatchObject({ lost: 0, requests: redis.gateway.counts.requests });
    console.log(
      `${count} queues: ${least} requests at the least, ${report.requests} made, ${report.acked} acked`,
    );
  }
});
