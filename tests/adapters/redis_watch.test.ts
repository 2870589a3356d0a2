/** Subscriptions: none to be had, broken ones, dead ones. */
import { expect, test } from "bun:test";
import { RedisBroker, type RedisBrokerOptions } from "../../adapters/redis/mod.ts";
import { silenceOf } from "../../adapters/redis/watch.ts";
import { startGateway } from "../../runtimes/bun/gateway/gateway.ts";
import type { BrokerQueue } from "../../src/broker.ts";
import { BrokerError, BrokerRefusedError } from "../../src/errors.ts";
import { put } from "../support/conformance_steps.ts";
import { startRedisOverHttp } from "../support/gateway.ts";
import { answering, HttpProxy, PASS } from "../support/http_proxy.ts";
import { redisForFile } from "../support/redis_fixture.ts";

const redis = redisForFile();

async function opened(
  url: string,
  options: Partial<RedisBrokerOptions> = {},
  timeoutMs = 10_000,
): Promise<BrokerQueue> {
  const broker = new RedisBroker({ url, token: "test-token", ...options });
  const queue = broker.queue("watched", {
    leaseMs: 60_000,
    requestTimeoutMs: timeoutMs,
    dedupeWindowMs: 60_000,
  });
  await queue.open();
  return queue;
}

function listener() {
  const ended = Promise.withResolvers<Error>();
  let wakes = 0;
  let ends = 0;
  return {
    ended: ended.promise,
    get wakes() {
      return wakes;
    },
    get ends() {
      return ends;
    },
    onWake: () => {
      wakes += 1;
    },
    onEnd: (error: Error) => {
      ends += 1;
      ended.resolve(error);
    },
  };
}

async function until(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error("waited in vain");
    await Bun.sleep(2);
  }
}

const subscribers = async () =>
  ((await redis.server.command("PUBSUB", "NUMSUB", "eddy:{watched}:wake")) as [string, number])[1];

async function untilSubscribers(count: number): Promise<void> {
  const deadline = performance.now() + 10_000;
  while ((await subscribers()) !== count) {
    if (performance.now() > deadline) throw new Error(`waited in vain for ${count} subscribers`);
    await Bun.sleep(2);
  }
}

test("a watch that resolved is subscribed; a closed one leaves nothing behind", async () => {
  const queue = await opened(redis.gateway.url);
  const { onWake, onEnd } = listener();
  const watch = await queue.watch!(onWake, onEnd);
  expect(await subscribers()).toBe(1);
  await watch.close();
  await watch.close();
  await untilSubscribers(0);
});

test("where there is no such endpoint a watch is refused, passing, and the rest works", async () => {
  const front = await HttpProxy.start(redis.gateway.url);
  const answers = [
    () => Response.json({ error: "ERR not found" }, { status: 404 }),
    () => Response.json({ result: null }),
    () => new Response("<html>no</html>", { status: 500 }),
    () => new Response("data: hello\n\n", { headers: { "content-type": "text/event-stream" } }),
  ];
  const queue = await opened(front.url);
  for (const answer of answers) {
    front.script = (_n, path) => (path.includes("/subscribe/") ? { kind: "own", answer } : PASS);
    const { onWake, onEnd } = listener();
    const error = await queue.watch!(onWake, onEnd).then(
      () => undefined,
      (caught: unknown) => caught,
    );
    expect(error).toBeInstanceOf(BrokerError);
    expect(error).not.toBeInstanceOf(BrokerRefusedError);
  }
  await put(queue, "a");
  await front.stop();
});

test("no confirmation: given up when the request's time is over", async () => {
  const front = await HttpProxy.start(redis.gateway.url);
  const queue = await opened(front.url, {}, 200);
  front.script = answering(
    () =>
      new Response(
        new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode(": hello\n\n")) }),
        { headers: { "content-type": "text/event-stream" } },
      ),
  );
  const { onWake, onEnd } = listener();
  await expect(queue.watch!(onWake, onEnd)).rejects.toThrow("did not answer within 200 ms");
  front.script = () => ({ kind: "halfOpen" });
  await expect(queue.watch!(onWake, onEnd)).rejects.toThrow("did not answer within 200 ms");
  await front.stop();
});

test("a server that cannot now is not said to have no subscriptions", async () => {
  const front = await HttpProxy.start(redis.gateway.url);
  const queue = await opened(front.url);
  const { onWake, onEnd } = listener();
  for (const [status, words] of [
    [503, "answered an error (HTTP 503)"],
    [429, "answered an error (HTTP 429)"],
    [404, "has no subscriptions over HTTP (it answered 404)"],
  ] as const) {
    front.script = answering(() => new Response("<html>later</html>", { status }));
    await expect(queue.watch!(onWake, onEnd)).rejects.toThrow(words);
  }
  await front.stop();
});

test("a wrong token is final here, too", async () => {
  const front = await HttpProxy.start(redis.gateway.url);
  const queue = await opened(front.url);
  front.script = answering(() => new Response("{}", { status: 401 }));
  const { onWake, onEnd } = listener();
  await expect(queue.watch!(onWake, onEnd)).rejects.toBeInstanceOf(BrokerRefusedError);
  await front.stop();
});

test("a stream that ends is told once", async () => {
  const gateway = startGateway({ redis: redis.server.url, token: "test-token" });
  const queue = await opened(gateway.url);
  const one = listener();
  await queue.watch!(one.onWake, one.onEnd);
  await gateway.stop();
  expect(await one.ended).toBeInstanceOf(BrokerError);
  await Bun.sleep(20);
  expect(one.ends).toBe(1);
});

test("a stream that Redis's loss ended is told", async () => {
  const own = await startRedisOverHttp();
  const queue = await opened(own.gateway.url);
  const one = listener();
  await queue.watch!(one.onWake, one.onEnd);
  await own.server.kill();
  expect(await one.ended).toBeInstanceOf(BrokerError);
  await own.stop();
});

test("a connection that is open and dead is noticed", async () => {
  const own = await startRedisOverHttp({}, { pingMs: 20 });
  const queue = await opened(own.gateway.url, { watchSilenceMs: 100 }, 200);
  const one = listener();
  await queue.watch!(one.onWake, one.onEnd);
  // Signs of life keep it.
  await Bun.sleep(400);
  expect(one.ends).toBe(0);
  own.server.freeze();
  expect((await one.ended).message).toContain("silent");
  own.server.thaw();
  await own.stop();
});

test("a gateway ends a subscription whose Redis stands still", async () => {
  const own = await startRedisOverHttp({}, { pingMs: 20, redisTimeoutMs: 300 });
  const queue = await opened(own.gateway.url);
  const one = listener();
  await queue.watch!(one.onWake, one.onEnd);
  own.server.freeze();
  expect((await one.ended).message).toContain("the server closed it");
  own.server.thaw();
  await own.stop();
});

test("two signs of life that are missing are doubted, one that came early is not the pace, and whoever expects none waits as long as he says", () => {
  expect(silenceOf(undefined, 60_000)).toBe(60_000);
  expect(silenceOf(2_000, 60_000)).toBe(4_000);
  expect(silenceOf(1, 60_000)).toBe(1_000);
  expect(silenceOf(45_000, 60_000)).toBe(60_000);
  expect(silenceOf(2_000, 100)).toBe(100);
});

test("a silent server without signs of life is asked, and a live one kept; asking wakes nobody", async () => {
  const own = await startRedisOverHttp({}, { pingMs: 3_600_000 });
  const queue = await opened(own.gateway.url, { watchSilenceMs: 50 });
  const one = listener();
  const watch = await queue.watch!(one.onWake, one.onEnd);
  const before = own.gateway.counts.requests;
  await until(() => own.gateway.counts.requests >= before + 4);
  expect([one.wakes, one.ends]).toEqual([0, 0]);
  await put(queue, "a");
  await until(() => one.wakes === 1);
  await watch.close();
  await own.stop();
});
