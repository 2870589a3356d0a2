/** An idle worker that believes that it will be woken looks by itself every 40 s only: whatever becomes of its subscription, it must notice sooner. */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { RedisBroker } from "../../adapters/redis/mod.ts";
import { type Gateway, startGateway } from "../../runtimes/bun/gateway/gateway.ts";
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import { defineWorker, queue, startWorker } from "../../src/mod.ts";
import { HttpProxy } from "../support/http_proxy.ts";
import { type RedisServer, startRedis } from "../support/redis_server.ts";

setDefaultTimeout(60_000);

const TOKEN = "test-token";
/** Its own look comes after 30 s at the soonest; what is found by then was not found by it. */
const SOON_MS = 20_000;
const INBOX = "eddy:{idle}:inbox";
const WAKE = "eddy:{idle}:wake";

interface Stage {
  readonly server: RedisServer;
  readonly proxy: HttpProxy;
  gateway: Gateway;
  /** How many handlers have begun. */
  readonly begun: () => number;
}

const endings: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function until(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + SOON_MS;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error("waited in vain");
    await Bun.sleep(5);
  }
}

/** A worker behind a proxy and a gateway, idle, subscribed, and asleep for 30 s at least. */
async function idleWorker(): Promise<Stage> {
  const server = await startRedis({ persist: true });
  endings.push(() => server.stop());
  const gateway = startGateway({ redis: server.url, token: TOKEN });
  const proxy = await HttpProxy.start(gateway.url);
  let begun = 0;
  const stage: Stage = { server, proxy, gateway, begun: () => begun };
  endings.push(() => stage.gateway.stop());
  endings.push(() => proxy.stop());
  const broker = new RedisBroker({ url: proxy.url, token: TOKEN });
  endings.push(() => broker.close());
  let isAsleep = false;
  const definition = defineWorker({
    queues: [
      queue("idle").handle(
        () => {
          begun += 1;
        },
        { requestTimeoutMs: 1_000 },
      ),
    ],
  });
  const worker = await startWorker(definition, {
    broker,
    platform: bunPlatform(),
    on: (event) => {
      if (event.type === "idle") isAsleep = event.nextLookMs >= 30_000;
    },
  });
  endings.push(() => worker.stop());
  await until(() => isAsleep);
  return stage;
}

test("Redis killed and started again, a job right behind its start", async () => {
  const { server, begun } = await idleWorker();
  await server.kill();
  await server.restart();
  // Nobody publishes it.
  await server.command("RPUSH", INBOX, "1");
  await until(() => begun() === 1);
});

test("Redis that stood still, a job that waited for it", async () => {
  const { server, begun } = await idleWorker();
  server.freeze();
  const pushed = server.command("RPUSH", INBOX, "1");
  const told = server.command("PUBLISH", WAKE, "1");
  await Bun.sleep(3_000);
  server.thaw();
  await Promise.all([pushed, told]);
  await until(() => begun() === 1);
});

test("a gateway killed and started again, a job while it was away", async () => {
  const stage = await idleWorker();
  const { port } = stage.gateway;
  await stage.gateway.stop();
  await stage.server.command("RPUSH", INBOX, "1");
  await stage.server.command("PUBLISH", WAKE, "1");
  stage.gateway = startGateway({ redis: stage.server.url, token: TOKEN, port });
  await until(() => stage.begun() === 1);
});

test("a subscription that is open and brings nothing any more", async () => {
  const { server, proxy, begun } = await idleWorker();
  // The server's pace is known once it gave signs of life, behind its confirmation.
  await until(() => proxy.streamed >= 3);
  proxy.isDeaf = true;
  await server.command("RPUSH", INBOX, "1");
  await server.command("PUBLISH", WAKE, "1");
  await until(() => begun() === 1);
  expect(begun()).toBe(1);
});
