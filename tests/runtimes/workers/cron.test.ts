/** Crons over Redis on Cloudflare's free plan, under the limits that production imposes. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { bunPlatform } from "../../../runtimes/bun/mod.ts";
import { type DrainReport, type EddyEvent, Producer, queue } from "../../../src/mod.ts";
import { startCallsSink } from "../../support/calls_sink.ts";
import { type RedisOverHttp, startRedisOverHttp } from "../../support/gateway.ts";
import type { Workerd } from "../../support/workerd.ts";
import type { InvocationRecord } from "../../support/workerd_rules.ts";
import { FREE_REQUESTS, startConsuming, TOKEN, toRedis } from "./consuming.ts";

const HEADERS = { authorization: `Bearer ${TOKEN}` };

let redis: RedisOverHttp;
let workerd: Workerd;
let sink: Bun.Server<undefined>;
/** What handlers called the sink with: `queue/id?attempt=n`. */
let called: string[] = [];
let firstCallAt: number | undefined;

beforeAll(async () => {
  redis = await startRedisOverHttp();
  sink = startCallsSink((call) => {
    firstCallAt ??= performance.now();
    called.push(call);
  });
  workerd = await start();
}, 60_000);
afterAll(async () => {
  await workerd?.stop();
  await redis?.stop();
  await sink?.stop(true);
});
beforeEach(async () => {
  await redis.server.command("FLUSHALL");
  called = [];
  firstCallAt = undefined;
  await workerd.setRules({ requests: FREE_REQUESTS, connections: 6, wallMs: null });
  await workerd.json("/test/events");
  await workerd.json("/test/reports");
});

function start(): Promise<Workerd> {
  return startConsuming("remote_worker.ts", toRedis(redis), sink);
}

async function enqueue(name: string, count: number): Promise<string[]> {
  const broker = redis.connect();
  const producer = new Producer({ broker, platform: bunPlatform() });
  const jobs = Array.from({ length: count }, () => ({ body: null }));
  const enqueued = await producer.enqueueMany(queue(name), jobs);
  await broker.close();
  return enqueued.map(({ id }) => `${name}/${id}`);
}

interface Run {
  readonly report: DrainReport;
  readonly record: InvocationRecord;
}

async function run(cron: string): Promise<Run> {
  expect(await workerd.scheduled(cron)).toBe("ok");
  const [report] = await workerd.json<DrainReport[]>("/test/reports");
  const record = (await workerd.records()).find((one) => one.kind === "scheduled");
  return { report: report!, record: record! };
}

/** Runs the cron until it says that the queue is empty. */
async function runs(cron: string, most: number): Promise<Run[]> {
  const all: Run[] = [];
  do {
    expect(all.length).toBeLessThan(most);
    all.push(await run(cron));
  } while (all.at(-1)!.report.stopped !== "empty");
  return all;
}

/** Expects that each of the jobs called the sink just once, at its first attempt. */
function expectEachOnce(jobs: readonly string[]): void {
  expect([...called].sort()).toEqual(jobs.map((job) => `${job}?attempt=1`).sort());
}

test("500 jobs of one request each: no run goes beyond 50 requests, none is lost, none charged in vain", async () => {
  const jobs = await enqueue("calls", 500);
  const all = await runs("calls", 20);
  expectEachOnce(jobs);
  for (const { report, record } of all) {
    expect(record).toMatchObject({ refused: 0, cut: false, error: null });
    expect(record.requests).toBeLessThanOrEqual(FREE_REQUESTS);
    expect(record.connections).toBeLessThanOrEqual(6);
    expect(report).toMatchObject({ retried: 0, dead: 0, lost: 0 });
  }
  // At the very least a run opens the queue, claims once and settles.
  const least = Math.ceil(500 / (FREE_REQUESTS - 3));
  console.log(
    `cron, free plan: 500 jobs of one request in ${all.length} runs (least possible ${least}); requests a run: ` +
      all.map(({ record }) => record.requests).join(" "),
  );
  expect(all.length).toBeLessThanOrEqual(Math.floor(least * 1.15));
}, 60_000);

test("a wall limit of 2 s and jobs of 150 ms: no run is cut off", async () => {
  await workerd.setRules({ requests: null, wallMs: 2_000 });
  const jobs = await enqueue("naps", 40);
  const all = await runs("naps 2000", 10);
  expectEachOnce(jobs);
  for (const { record } of all) expect(record).toMatchObject({ cut: false, error: null });
  console.log(
    `cron, wall limit of 2 s: 40 jobs of 150 ms in ${all.length} runs (least possible 3), of ${all.map(({ record }) => record.ms).join(", ")} ms`,
  );
}, 60_000);

test("a run that is cut off in the middle loses nothing", async () => {
  await workerd.setRules({ requests: null, wallMs: 500 });
  const jobs = await enqueue("naps", 12);
  // It believes that it has fifteen minutes.
  expect(await workerd.scheduled("naps")).toBe("exception");
  expect((await workerd.records()).find((one) => one.kind === "scheduled")).toMatchObject({ cut: true });
  const before = called.length;
  expect(before).toBeLessThan(12);
  await workerd.setRules({ requests: null, wallMs: null });
  // What the run held comes back once its lease is over.
  const deadline = performance.now() + 20_000;
  const distinct = () => new Set(called.map((one) => one.split("?")[0]));
  while (distinct().size < jobs.length && performance.now() < deadline) await run("naps");
  expect([...distinct()].sort()).toEqual([...jobs].sort());
  const { report } = await run("naps");
  expect(report).toMatchObject({ jobs: 0, stopped: "empty", left: 0 });
}, 60_000);

for (const count of [2, 10]) {
  test(`${count} drains of one queue at once: each job once`, async () => {
    await workerd.setRules({ requests: null });
    const jobs = await enqueue("calls", 300);
    const outcomes = await Promise.all(Array.from({ length: count }, () => workerd.scheduled("calls 60000")));
    expect(outcomes.every((one) => one === "ok")).toBe(true);
    // Each may stop at its own budget of fifty requests.
    await runs("calls", 20);
    expectEachOnce(jobs);
    for (const record of await workerd.records()) expect(record.requests).toBeLessThanOrEqual(FREE_REQUESTS);
  }, 60_000);
}

test("handlers side by side share six connections", async () => {
  await workerd.setRules({ requests: null });
  const jobs = await enqueue("wide", 100);
  const all = await runs("wide", 10);
  expectEachOnce(jobs);
  expect(Math.max(...all.map(({ record }) => record.connections))).toBe(6);
});

test("POST /v1/drain starts one, answers with its report, and refuses another beside it", async () => {
  await workerd.setRules({ requests: null });
  await enqueue("naps", 3);
  const post = () =>
    workerd.fetch("/v1/drain", {
      method: "POST",
      headers: HEADERS,
      body: JSON.stringify({ queues: ["naps"] }),
    });
  const first = post();
  const deadline = performance.now() + 10_000;
  while (called.length === 0 && performance.now() < deadline) await Bun.sleep(5);
  const second = await post();
  expect(second.status).toBe(409);
  expect(await second.json()).toMatchObject({ code: "draining" });
  const report = (await (await first).json()) as DrainReport;
  expect(report).toMatchObject({ jobs: 3, acked: 3, stopped: "empty" });
  expect((await post()).status).toBe(200);
  expect((await workerd.fetch("/v1/drain", { method: "POST" })).status).toBe(401);
}, 30_000);

test("a wrong token for Redis fails the cron, and says so without the token", async () => {
  const other = await startConsuming("remote_worker.ts", toRedis(redis, "wrong-token"), sink, { rules: {} });
  try {
    expect(await other.scheduled("calls")).toBe("exception");
    const record = (await other.records()).find((one) => one.kind === "scheduled");
    expect(record?.error).toContain("refuses the token");
    expect(record?.error).not.toContain("wrong-token");
  } finally {
    await other.stop();
  }
}, 30_000);

test("jobs that only compute: batches are sized although the clock stands still", async () => {
  await workerd.setRules({ requests: null });
  await enqueue("sums", 60);
  await workerd.json("/test/events");
  await runs("sums", 10);
  const events = await workerd.json<EddyEvent[]>("/test/events");
  const asked = events.flatMap((event) => (event.type === "claimed" ? [event.asked] : []));
  console.log(`cron, frozen clock: jobs that compute for 40 ms are claimed by ${asked.join(" ")}`);
  // 250 ms hold no more than six of them, and without what the clock hides sixteen would be asked for.
  expect(Math.max(...asked)).toBeLessThanOrEqual(6);
  expect(Math.max(...asked)).toBeGreaterThan(1);
});

test("from a cold start to the first job", async () => {
  const [job] = await enqueue("calls", 1);
  const startedAt = performance.now();
  const cold = await start();
  try {
    const readyAt = performance.now();
    expect(await cold.scheduled("calls")).toBe("ok");
    expect(called).toEqual([`${job}?attempt=1`]);
    console.log(
      `cold start: bundling and starting workerd ${Math.round(readyAt - startedAt)} ms, then ${Math.round(firstCallAt! - readyAt)} ms from the cron's call to the first job's request`,
    );
  } finally {
    await cold.stop();
  }
}, 30_000);
