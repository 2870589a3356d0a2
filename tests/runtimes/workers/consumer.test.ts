/** A consumer that lives in a Durable Object and drains Redis: alarm, drain, alarm. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { bunPlatform } from "../../../runtimes/bun/mod.ts";
import type { ConsumerStatus } from "../../../runtimes/workers/consumer_object.ts";
import { Producer, queue } from "../../../src/mod.ts";
import { startCallsSink } from "../../support/calls_sink.ts";
import { type RedisOverHttp, startRedisOverHttp } from "../../support/gateway.ts";
import type { Workerd } from "../../support/workerd.ts";
import { startConsuming, toRedis } from "./consuming.ts";

let redis: RedisOverHttp;
let workerd: Workerd;
let sink: Bun.Server<undefined>;
let called: string[] = [];

beforeAll(async () => {
  redis = await startRedisOverHttp({ persist: true });
  sink = startCallsSink((call) => called.push(call));
  workerd = await startConsuming("remote_worker.ts", toRedis(redis), sink);
}, 60_000);
afterAll(async () => {
  await workerd?.stop();
  await redis?.stop();
  await sink?.stop(true);
});
beforeEach(() => {
  called = [];
});

const ask = (what: string) => workerd.json<ConsumerStatus>(`/test/${what}`);

async function enqueue(count: number): Promise<string[]> {
  const broker = redis.connect();
  const producer = new Producer({ broker, platform: bunPlatform() });
  const jobs = Array.from({ length: count }, () => ({ body: null }));
  const enqueued = await producer.enqueueMany(queue("calls"), jobs);
  await broker.close();
  return enqueued.map(({ id }) => `calls/${id}?attempt=1`);
}

async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`Waited in vain until ${what}`);
    await Bun.sleep(10);
  }
}

test("does nothing before it is started, then works off what is there and what comes", async () => {
  const before = await enqueue(120);
  expect(await ask("status")).toMatchObject({ on: false, draining: false, lastReport: null });
  await workerd.records();
  await ask("start");
  await ask("start");
  await until("the backlog was worked off", () => called.length >= 120);
  expect(called.sort()).toEqual(before.sort());
  // Each alarm is an event of its own, with a budget of its own.
  const alarms: Awaited<ReturnType<typeof workerd.records>> = [];
  await until("each of its alarms was told of", async () => {
    alarms.push(...(await workerd.records()).filter((record) => record.kind === "alarm"));
    return alarms.length > 2;
  });
  for (const record of alarms) expect(record).toMatchObject({ refused: 0, error: null });
  called = [];
  const later = await enqueue(3);
  await until("the later ones ran", () => called.length >= 3);
  expect(called.sort()).toEqual(later.sort());
});

test("is soon there when it is poked", async () => {
  await until("the gap has grown", async () => {
    const { lastReport } = await ask("status");
    return lastReport !== null && lastReport.jobs === 0;
  });
  await enqueue(1);
  await ask("poke");
  await until("it ran", () => called.length === 1);
});

test("outlives a broker that is gone for a while", async () => {
  await redis.server.kill();
  await until("a drain failed", async () => (await ask("status")).lastError !== null);
  const { lastError } = await ask("status");
  expect(lastError).not.toContain(redis.gateway.token);
  await redis.server.restart();
  const jobs = await enqueue(2);
  await until("they ran", () => called.length >= 2);
  expect(called.sort()).toEqual(jobs.sort());
  await until("it says that all is well", async () => (await ask("status")).lastError === null);
}, 40_000);

test("goes on after the whole runtime was started anew", async () => {
  await workerd.restart();
  const jobs = await enqueue(2);
  await until("they ran", () => called.length >= 2);
  expect(called.sort()).toEqual(jobs.sort());
}, 40_000);

test("stops, and starts again", async () => {
  await ask("stop");
  expect(await ask("status")).toMatchObject({ on: false, draining: false });
  await workerd.records();
  const jobs = await enqueue(2);
  await ask("poke");
  expect((await workerd.records()).filter((record) => record.kind === "alarm")).toEqual([]);
  expect(called).toEqual([]);
  await ask("start");
  await until("they ran", () => called.length >= 2);
  expect(called.sort()).toEqual(jobs.sort());
  await ask("stop");
});
