/** A Worker without the HTTP app drains all the same. */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { bunPlatform } from "../../../runtimes/bun/mod.ts";
import { Producer, queue } from "../../../src/mod.ts";
import { startRedisOverHttp } from "../../support/gateway.ts";
import { Workerd } from "../../support/workerd.ts";

const SETTINGS = { leaseMs: 1_000, requestTimeoutMs: 5_000, dedupeWindowMs: 60_000 };

test("a Worker that serves no HTTP drains by its cron", async () => {
  const redis = await startRedisOverHttp();
  const workerd = await Workerd.start({
    entry: resolve(import.meta.dir, "cron_only_worker.ts"),
    bindings: { REDIS_URL: redis.gateway.url, REDIS_TOKEN: redis.gateway.token },
    rules: { requests: 50, connections: 6, frozenClock: true },
  });
  const broker = redis.connect();
  try {
    const jobs = Array.from({ length: 30 }, () => ({ body: null }));
    await new Producer({ broker, platform: bunPlatform() }).enqueueMany(queue("notes"), jobs);
    expect(await workerd.scheduled()).toBe("ok");
    const notes = broker.queue("notes", SETTINGS);
    await notes.open();
    expect(await notes.sizes?.()).toMatchObject({ ready: 0, delayed: 0, held: 0, dead: 0 });
  } finally {
    await broker.close();
    await workerd.stop();
    await redis.stop();
  }
}, 60_000);
