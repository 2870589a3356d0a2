/** Real payloads through a real worker to a real receiver, on SQLite, on Redis over HTTP and on NATS. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NatsBroker } from "../../adapters/nats/mod.ts";
import { githubPayloads } from "../../examples/github_payloads.ts";
import { deliverWebhooks, type WebhookOptions, webhooks } from "../../examples/webhooks.ts";
import { bunPlatform, openBroker } from "../../runtimes/bun/mod.ts";
import {
  type Broker,
  type BrokerQueue,
  drain,
  Producer,
  resolveOptions,
  startWorker,
} from "../../src/mod.ts";
import { type RedisOverHttp, startRedisOverHttp } from "../support/gateway.ts";
import { type NatsServer, startNats } from "../support/nats_server.ts";
import { startSink } from "./sink.ts";

setDefaultTimeout(30_000);

const SECRET = "a shared secret";
const FAST: Pick<WebhookOptions, "backoff" | "secret"> = {
  secret: SECRET,
  backoff: { baseMs: 2, maxMs: 20 },
};
const platform = bunPlatform();
const payloads = githubPayloads();
const encoder = new TextEncoder();

let redis: RedisOverHttp;
let nats: NatsServer;
let natsRuns = 0;
let folder: string;
beforeAll(async () => {
  [redis, nats] = await Promise.all([startRedisOverHttp(), startNats()]);
  folder = await mkdtemp(join(tmpdir(), "eddy-webhooks-"));
});
afterAll(async () => {
  await redis.stop();
  await nats.stop();
  await rm(folder, { recursive: true, force: true });
});

const BROKERS: [string, () => Promise<Broker>][] = [
  [
    "sqlite",
    () => openBroker({ kind: "sqlite", file: join(folder, `${crypto.randomUUID()}.sqlite`) }, platform),
  ],
  [
    "redis",
    async () => {
      await redis.server.command("FLUSHALL");
      return redis.connect();
    },
  ],
  [
    "nats",
    async () => {
      natsRuns += 1;
      // Streams of their own: each test starts with an empty queue.
      return new NatsBroker({ url: nats.url, prefix: `RUN${natsRuns}` });
    },
  ],
];

/** Opens the queue and enqueues every payload under an id of its own: `event-index`. */
async function enqueueAll(broker: Broker): Promise<BrokerQueue> {
  const settings = resolveOptions(webhooks.handle(() => {})).settings;
  const queue = broker.queue(webhooks.name, settings);
  await queue.open();
  const producer = new Producer({ broker, platform });
  const enqueued = await producer.enqueueRaw(
    webhooks,
    payloads.map(({ event, text }, i) => ({ id: `${event}-${i}`, body: text, headers: { event } })),
  );
  expect(enqueued.filter((one) => !one.duplicate)).toHaveLength(payloads.length);
  return queue;
}

/** Runs the worker until so many jobs have come to an end, then stops it. */
async function workUntil(broker: Broker, options: WebhookOptions, count: number): Promise<void> {
  const ended = Promise.withResolvers<void>();
  let left = count;
  const worker = await startWorker(deliverWebhooks(options), {
    broker,
    platform,
    on: (event) => {
      if (event.type !== "settled" || (event.verdict !== "ack" && event.verdict !== "dead")) return;
      left -= 1;
      if (left === 0) ended.resolve();
    },
  });
  await Promise.race([ended.promise, worker.done]);
  await worker.stop();
}

/** Each payload as it must arrive. */
function expectEachArrived(accepted: readonly { delivery: string; event: string; body: Uint8Array }[]): void {
  const arrived = new Map(accepted.map((one) => [one.delivery, one]));
  expect(arrived.size).toBe(payloads.length);
  for (const [i, { event, text }] of payloads.entries()) {
    const one = arrived.get(`${event}-${i}`);
    expect(one?.event).toBe(event);
    expect(one?.body).toEqual(encoder.encode(text));
  }
}

test("the package has every payload of every event", () => {
  expect(payloads.length).toBeGreaterThan(300);
  expect(new Set(payloads.map(({ event }) => event)).size).toBeGreaterThan(50);
});

describe.each(BROKERS)("on %s", (_, connect) => {
  test("every payload arrives, byte for byte and signed, and none is set aside", async () => {
    await using sink = startSink(SECRET);
    const broker = await connect();
    const queue = await enqueueAll(broker);
    await workUntil(broker, { ...FAST, url: sink.url }, payloads.length);
    expectEachArrived(sink.accepted);
    expect(sink.unsigned).toBe(0);
    expect(await queue.sizes!()).toMatchObject({ ready: 0, delayed: 0, held: 0, dead: 0 });
    await broker.close();
  });

  test("when the receiver fails a tenth of the first tries, all arrive by another", async () => {
    await using sink = startSink(SECRET);
    const failed = new Set<string>();
    const fails = (delivery: string) => Number(delivery.slice(delivery.lastIndexOf("-") + 1)) % 10 === 3;
    sink.decide = ({ delivery }, seen) => {
      if (seen > 0 || !fails(delivery)) return 204;
      failed.add(delivery);
      // A busy receiver may say when to come back.
      return failed.size % 2 === 0 ? 500 : { status: 429, headers: { "Retry-After": "0" } };
    };
    const broker = await connect();
    const queue = await enqueueAll(broker);
    await workUntil(broker, { ...FAST, url: sink.url }, payloads.length);
    expectEachArrived(sink.accepted);
    expect(failed.size).toBe(payloads.filter((_, i) => i % 10 === 3).length);
    expect(sink.requests).toBeGreaterThanOrEqual(payloads.length + failed.size);
    expect(await queue.sizes!()).toMatchObject({ ready: 0, delayed: 0, held: 0, dead: 0 });
    await broker.close();
  });

  test("a body that is always refused is the one dead letter, and arrives by a redrive once it is accepted", async () => {
    await using sink = startSink(SECRET);
    const refused = `${payloads[100]!.event}-100`;
    sink.decide = ({ delivery }) => (delivery === refused ? 422 : 204);
    const broker = await connect();
    const queue = await enqueueAll(broker);
    await workUntil(broker, { ...FAST, url: sink.url }, payloads.length);
    expect(new Set(sink.accepted.map((one) => one.delivery)).size).toBe(payloads.length - 1);
    expect(await queue.peek!("dead", 10)).toEqual([
      expect.objectContaining({
        id: refused,
        error: expect.stringContaining("The receiver answered 422"),
        attempts: 1,
      }),
    ]);
    sink.decide = () => 204;
    expect(await queue.redrive!({ limit: 10 })).toBe(1);
    const report = await drain(deliverWebhooks({ ...FAST, url: sink.url }), { broker, platform });
    expect(report).toMatchObject({ jobs: 1, acked: 1, left: 0 });
    expectEachArrived(sink.accepted);
    expect(await queue.sizes!()).toMatchObject({ dead: 0 });
    await broker.close();
  });
});

test("a receiver that is gone, redirects or does not know the secret", async () => {
  await using sink = startSink("another secret");
  const broker = await openBroker({ kind: "memory" }, platform);
  const queue = broker.queue(webhooks.name, resolveOptions(webhooks.handle(() => {})).settings);
  await queue.open();
  const outcome = async (url: string) => {
    await new Producer({ broker, platform }).enqueueRaw(webhooks, [{ body: '{"hush":1}' }]);
    const worker = deliverWebhooks({ ...FAST, url, maxAttempts: 2 });
    let report = await drain(worker, { broker, platform });
    // The second attempt may be due only after the first drain has found nothing.
    while (report.left !== 0) report = await drain(worker, { broker, platform });
    const [dead] = await queue.peek!("dead", 10);
    await queue.clear!(["dead"]);
    return { attempts: dead?.attempts, error: dead?.error };
  };
  const unsigned = await outcome(sink.url);
  expect(unsigned).toEqual({ attempts: 1, error: expect.stringContaining("The receiver answered 401") });

  const elsewhere = Bun.serve({
    port: 0,
    fetch: () => new Response(null, { status: 302, headers: { Location: sink.url } }),
  });
  const redirected = await outcome(elsewhere.url.href);
  expect(redirected).toEqual({ attempts: 1, error: expect.stringContaining("The receiver answered 302") });
  const { href } = elsewhere.url;
  await elsewhere.stop(true);

  const gone = await outcome(href);
  expect(gone).toEqual({ attempts: 2, error: expect.not.stringContaining("hush") });
  await broker.close();
});

test("what cannot work is refused when the worker is made", () => {
  expect(() => deliverWebhooks({ url: "", secret: "x" })).toThrow("Cannot deliver webhooks: the URL is none");
  expect(() => deliverWebhooks({ url: "ftp://example.com", secret: "x" })).toThrow("the URL is none");
  expect(() => deliverWebhooks({ url: "https://example.com", secret: "" })).toThrow("the secret is empty");
});
