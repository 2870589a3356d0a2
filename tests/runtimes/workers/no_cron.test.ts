/** A Worker with a consumer's object and no cron: an enqueue is all that it takes. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { ConsumerStatus } from "../../../runtimes/workers/consumer_object.ts";
import { startCallsSink } from "../../support/calls_sink.ts";
import { type RedisOverHttp, startRedisOverHttp } from "../../support/gateway.ts";
import type { Workerd } from "../../support/workerd.ts";
import { FREE_REQUESTS, startConsuming, TOKEN, toRedis } from "./consuming.ts";

let redis: RedisOverHttp;
let sink: Bun.Server<undefined>;
/** The ids of the jobs that ran. */
let ran: string[] = [];

beforeAll(async () => {
  redis = await startRedisOverHttp();
  sink = startCallsSink((id) => ran.push(id));
}, 60_000);
afterAll(async () => {
  await redis?.stop();
  await sink?.stop(true);
});
beforeEach(async () => {
  await redis.server.command("FLUSHALL");
  ran = [];
});

/** A Worker whose object was never started. */
function startFresh(): Promise<Workerd> {
  return startConsuming("no_cron_worker.ts", toRedis(redis), sink);
}

async function enqueue(workerd: Workerd, count = 1): Promise<string[]> {
  const { accepted } = await workerd.json<{ accepted: { id: string }[] }>("/v1/queues/calls/jobs", {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/x-ndjson" },
    body: "null\n".repeat(count),
  });
  return accepted.map(({ id }) => id);
}

async function untilRan(ids: readonly string[]): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (ran.length < ids.length) {
    if (performance.now() > deadline) throw new Error(`Ran ${ran.length} of ${ids.length} jobs`);
    await Bun.sleep(10);
  }
  expect(ran.splice(0).sort()).toEqual([...ids].sort());
}

const statusOf = (workerd: Workerd) => workerd.json<ConsumerStatus>("/test/status");

test("what is enqueued by HTTP is worked off, after the runtime's restart too", async () => {
  const workerd = await startFresh();
  try {
    expect(await statusOf(workerd)).toMatchObject({ on: false });
    await workerd.records();
    const first = await enqueue(workerd, 3);
    // The response is there once all that the invocation was to wait for is done.
    const [enqueued] = (await workerd.records()).filter(({ kind }) => kind === "fetch");
    expect(enqueued).toMatchObject({ objectCalls: 1, refused: 0 });
    await untilRan(first);
    await workerd.restart();
    await untilRan(await enqueue(workerd, 2));
  } finally {
    await workerd.stop();
  }
}, 60_000);

test("what the Worker's own code enqueues is, too", async () => {
  const workerd = await startFresh();
  try {
    const { id } = await workerd.json<{ id: string }>("/test/produce");
    const [produced] = (await workerd.records()).filter(({ kind }) => kind === "fetch");
    expect(produced).toMatchObject({ objectCalls: 1 });
    await untilRan([id]);
  } finally {
    await workerd.stop();
  }
}, 60_000);

test("an object that was stopped stays so, whatever is enqueued and whatever crons come, until it is started", async () => {
  const workerd = await startFresh();
  try {
    await workerd.json("/test/stop");
    await workerd.records();
    const ids = await enqueue(workerd);
    expect(await workerd.scheduled()).toBe("ok");
    await workerd.restart();
    ids.push(...(await enqueue(workerd)));
    expect((await workerd.records()).filter(({ kind }) => kind === "alarm")).toEqual([]);
    expect(await statusOf(workerd)).toMatchObject({ on: false, draining: false, lastReport: null });
    await workerd.json("/test/start");
    await untilRan(ids);
  } finally {
    await workerd.stop();
  }
}, 60_000);

test("a cron starts an object that never was", async () => {
  const workerd = await startFresh();
  try {
    expect(await workerd.scheduled()).toBe("ok");
    expect(await statusOf(workerd)).toMatchObject({ on: true });
  } finally {
    await workerd.stop();
  }
}, 60_000);

test("a cron's run and its call of the object together keep to what an invocation may spend", async () => {
  const workerd = await startFresh();
  try {
    // So that nobody else takes the jobs.
    await workerd.json("/test/stop");
    const ids = await enqueue(workerd, 2 * FREE_REQUESTS);
    await workerd.records();
    for (let runs = 1; ran.length < ids.length; runs += 1) {
      expect(runs).toBeLessThan(6);
      expect(await workerd.scheduled("drain")).toBe("ok");
      const [run] = (await workerd.records()).filter(({ kind }) => kind === "scheduled");
      expect(run).toMatchObject({ objectCalls: 1, refused: 0, error: null });
    }
    expect(ran.sort()).toEqual(ids.sort());
  } finally {
    await workerd.stop();
  }
}, 60_000);
