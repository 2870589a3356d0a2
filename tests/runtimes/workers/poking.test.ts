/** When a Worker calls its consumer's object, and what that call leaves of the invocation's requests. */
import { expect, test } from "bun:test";
import * as v from "valibot";
import { MemoryBroker } from "../../../adapters/memory.ts";
import { bunPlatform } from "../../../runtimes/bun/mod.ts";
import type { ConsumerObjectStub } from "../../../runtimes/workers/consumer_object.ts";
import { createWorkersHandler } from "../../../runtimes/workers/handler.ts";
import { Invocations } from "../../../runtimes/workers/invocations.ts";
import { defineWorker, queue } from "../../../src/mod.ts";

const TOKEN = "test-token";
const sums = queue("sums", { body: v.number() });
const definition = defineWorker({ queues: [sums.handle(() => {})] });

/** A Worker whose object notes how often it is called. */
function workerWith(poke: () => Promise<void>) {
  const platform = bunPlatform();
  const broker = new MemoryBroker({ now: () => platform.now(), wallNow: () => platform.wallNow() });
  const logged: string[] = [];
  const waitedFor: Promise<unknown>[] = [];
  const ctx = { waitUntil: (promise: Promise<unknown>) => void waitedFor.push(promise) };
  const handler = createWorkersHandler<null>({
    definition,
    broker: () => broker.connect(),
    consumer: () => ({ poke }) as ConsumerObjectStub,
    token: () => TOKEN,
    drain: false,
    http: { maxLines: 2 },
    log: (level, message) => void logged.push(`${level}: ${message}`),
  });
  const post = async (path: string, body: string, headers: Record<string, string> = {}) => {
    const request = new Request(`http://worker.test/v1/queues/${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}`, ...headers },
      body,
    });
    const { status } = await handler.fetch(request, null, ctx);
    await Promise.all(waitedFor);
    return status;
  };
  return { handler, ctx, post, logged, waitedFor };
}

test("each request that may have brought work calls it once, others do not", async () => {
  let pokes = 0;
  const { post } = workerWith(async () => {
    pokes += 1;
  });
  const NDJSON = { "content-type": "application/x-ndjson" };
  const calls = async (...[path, body, headers]: Parameters<typeof post>) => {
    pokes = 0;
    return [await post(path, body, headers), pokes];
  };
  expect(await calls("sums/jobs", "1")).toEqual([201, 1]);
  expect(await calls("sums/jobs", "1\n2", NDJSON)).toEqual([200, 1]);
  expect(await calls("sums/jobs", '1\n"two"', NDJSON)).toEqual([207, 1]);
  // The first two were taken.
  expect(await calls("sums/jobs", "1\n2\n3\n", NDJSON)).toEqual([413, 1]);
  expect(await calls("sums/redrive", '{"limit":1}')).toEqual([200, 1]);
  expect(await calls("sums/pause", "")).toEqual([200, 0]);
  expect(await calls("sums/resume", "")).toEqual([200, 1]);
  expect(await calls("sums/jobs", '"one"')).toEqual([422, 0]);
  expect(await calls("other/jobs", "1")).toEqual([404, 0]);
  expect(await calls("sums/jobs", "1", { authorization: "Bearer wrong" })).toEqual([401, 0]);
});

test("an object that cannot be called costs no enqueue, and is told of", async () => {
  const { post, handler, ctx, logged, waitedFor } = workerWith(() => Promise.reject(new Error("overloaded")));
  expect(await post("sums/jobs", "1")).toBe(201);
  const sent = await handler.produce(null, ctx, (producer) => producer.enqueue(sums, 2));
  expect(sent.duplicate).toBe(false);
  await Promise.all(waitedFor);
  await handler.scheduled({ cron: "* * * * *", scheduledTime: 0 }, null, ctx);
  const line = "error: The consumer could not be poked: until it is, its jobs may have to wait";
  expect(logged).toEqual([line, line, line]);
});

test("the call is kept back from what an invocation may spend", () => {
  const ctx = { waitUntil: () => {} };
  const consumer = () => ({}) as ConsumerObjectStub;
  const broker = () => {
    throw new Error("never made here");
  };
  const requests = (options: Partial<ConstructorParameters<typeof Invocations<null>>[0]>) =>
    new Invocations<null>({ definition, broker, ...options }).platform(ctx, "cron").limits.requests;
  expect(requests({})).toBe(50);
  expect(requests({ consumer })).toBe(49);
  expect(requests({ consumer, plan: "paid" })).toBe(9_999);
  expect(requests({ consumer, limits: { requests: 20 } })).toBe(19);
  expect(requests({ consumer, limits: { requests: 1 } })).toBe(1);
});
