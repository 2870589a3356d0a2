/** The examples for Workers, each run in workerd as it would be deployed. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join, resolve } from "node:path";
import { type RedisOverHttp, startRedisOverHttp } from "../../support/gateway.ts";
import { type NatsServer, startNats } from "../../support/nats_server.ts";
import { Workerd } from "../../support/workerd.ts";

const ROOT = resolve(import.meta.dir, "../../..");
const TOKEN = "test-token";
const HEADERS = { authorization: `Bearer ${TOKEN}` };
const MAIL = JSON.stringify({ to: "ada@example.com", subject: "Hello" });

interface Sizes {
  readonly ready: number;
  readonly delayed: number;
  readonly held: number;
  readonly dead: number;
}

async function enqueueMails(workerd: Workerd, count: number): Promise<void> {
  const response = await workerd.fetch("/v1/queues/emails/jobs", {
    method: "POST",
    headers: { ...HEADERS, "content-type": "application/x-ndjson" },
    body: Array.from({ length: count }, () => MAIL).join("\n"),
  });
  expect(response.status).toBe(200);
}

async function sizes(workerd: Workerd): Promise<Sizes> {
  const { queues } = await workerd.json<{ queues: { sizes: Sizes }[] }>("/v1/queues", { headers: HEADERS });
  return queues[0]!.sizes;
}

async function untilEmpty(workerd: Workerd): Promise<void> {
  const deadline = performance.now() + 20_000;
  for (;;) {
    const { ready, delayed, held, dead } = await sizes(workerd);
    expect(dead).toBe(0);
    if (ready + delayed + held === 0) return;
    if (performance.now() > deadline) throw new Error("The queue was not emptied");
    await Bun.sleep(20);
  }
}

/** What an example with a cron and a consumer does, whatever its broker. */
function worksOffMails(running: () => Workerd): void {
  test("takes jobs in by HTTP, and its consumer works them off with no cron", async () => {
    await enqueueMails(running(), 30);
    await untilEmpty(running());
    for (const record of await running().records()) expect(record).toMatchObject({ refused: 0, error: null });
  }, 30_000);

  test("its cron comes beside the consumer", async () => {
    await enqueueMails(running(), 10);
    expect(await running().scheduled()).toBe("ok");
    await untilEmpty(running());
    for (const record of await running().records()) expect(record).toMatchObject({ refused: 0, error: null });
  }, 30_000);
}

describe("a Worker with a cron and Redis", () => {
  let redis: RedisOverHttp;
  let workerd: Workerd;

  beforeAll(async () => {
    redis = await startRedisOverHttp();
    workerd = await Workerd.start({
      entry: join(ROOT, "examples/workers_redis/worker.ts"),
      bindings: {
        EDDY_BROKER: redis.gateway.url,
        EDDY_BROKER_TOKEN: redis.gateway.token,
        EDDY_TOKEN: TOKEN,
      },
      objects: { EDDY_CONSUMER: "EddyConsumer" },
      rules: { requests: 50, connections: 6, frozenClock: true },
    });
  }, 60_000);
  afterAll(async () => {
    await workerd?.stop();
    await redis?.stop();
  });

  worksOffMails(() => workerd);

  test("refuses a body that does not fit, and a caller without the token", async () => {
    const wrong = await workerd.fetch("/v1/queues/emails/jobs", {
      method: "POST",
      headers: HEADERS,
      body: "{}",
    });
    expect(wrong.status).toBe(422);
    const stranger = await workerd.fetch("/v1/queues/emails/jobs", { method: "POST", body: MAIL });
    expect(stranger.status).toBe(401);
    expect((await workerd.fetch("/health")).status).toBe(200);
  });
});

describe("a Worker with a cron and NATS", () => {
  let nats: NatsServer;
  let workerd: Workerd;

  beforeAll(async () => {
    nats = await startNats({ config: 'authorization { token: "nats-token" }' });
    workerd = await Workerd.start({
      entry: join(ROOT, "examples/workers_nats/worker.ts"),
      bindings: { EDDY_BROKER: nats.url, EDDY_BROKER_TOKEN: "nats-token", EDDY_TOKEN: TOKEN },
      objects: { EDDY_CONSUMER: "EddyConsumer" },
      flags: ["nodejs_compat"],
      rules: { requests: 50, connections: 6, frozenClock: true },
    });
  }, 60_000);
  afterAll(async () => {
    await workerd?.stop();
    await nats?.stop();
  });

  worksOffMails(() => workerd);
});

describe("a Worker with nothing but an object", () => {
  let workerd: Workerd;

  const startWith = (token: string) =>
    Workerd.start({
      entry: join(ROOT, "examples/workers_object/worker.ts"),
      bindings: token === "" ? {} : { EDDY_TOKEN: token },
      objects: { EDDY_QUEUE: "EddyQueue" },
      rules: { requests: 50, connections: 6, frozenClock: true },
    });
  beforeAll(async () => {
    workerd = await startWith(TOKEN);
  }, 60_000);
  afterAll(async () => {
    await workerd?.stop();
  });

  test("takes jobs in by HTTP, and runs them with nothing else to trigger it", async () => {
    await enqueueMails(workerd, 100);
    await untilEmpty(workerd);
    for (const record of await workerd.records()) expect(record).toMatchObject({ refused: 0, error: null });
  }, 30_000);

  test("without its secret it serves nobody, and says what to set", async () => {
    const open = await startWith("");
    try {
      const response = await open.fetch("/v1/queues", { headers: { authorization: "Bearer undefined" } });
      expect(response.status).toBe(503);
      expect(await response.json()).toMatchObject({ code: "not-configured" });
      expect((await open.fetch("/health")).status).toBe(200);
    } finally {
      await open.stop();
    }
  });
});
