/** Crons over NATS on Cloudflare's free plan, under the limits that production imposes. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { NatsBroker } from "../../../adapters/nats/mod.ts";
import { bunPlatform } from "../../../runtimes/bun/mod.ts";
import type { ConsumerStatus } from "../../../runtimes/workers/consumer_object.ts";
import { type DrainReport, Producer, queue } from "../../../src/mod.ts";
import { startCallsSink } from "../../support/calls_sink.ts";
import { type NatsServer, startNats } from "../../support/nats_server.ts";
import type { Workerd } from "../../support/workerd.ts";
import { FREE_REQUESTS, startConsuming } from "./consuming.ts";

let nats: NatsServer;
let workerd: Workerd;
let sink: Bun.Server<undefined>;
/** What handlers called the sink with: `queue/id?attempt=n`. */
let called: string[] = [];

beforeAll(async () => {
  nats = await startNats();
  sink = startCallsSink((call) => called.push(call));
  workerd = await startConsuming("remote_worker.ts", { NATS_URL: nats.url }, sink, {
    flags: ["nodejs_compat"],
  });
}, 60_000);
afterAll(async () => {
  await workerd?.stop();
  await nats?.stop();
  await sink?.stop(true);
});
beforeEach(() => {
  called = [];
});

async function enqueue(count: number): Promise<string[]> {
  const broker = new NatsBroker({ url: nats.url });
  const producer = new Producer({ broker, platform: bunPlatform() });
  const enqueued = await producer.enqueueMany(
    queue("calls"),
    Array.from({ length: count }, () => ({ body: null })),
  );
  await broker.close();
  return enqueued.map(({ id }) => `calls/${id}?attempt=1`);
}

test("500 jobs of one request each: no run goes beyond 50 requests, none is lost, none charged in vain", async () => {
  const jobs = await enqueue(500);
  const requests: number[] = [];
  for (let stopped = ""; stopped !== "empty"; ) {
    expect(requests.length).toBeLessThan(20);
    expect(await workerd.scheduled("calls")).toBe("ok");
    const [report] = await workerd.json<DrainReport[]>("/test/reports");
    const record = (await workerd.records()).find((one) => one.kind === "scheduled");
    expect(record).toMatchObject({ refused: 0, cut: false, error: null });
    expect(record?.requests).toBeLessThanOrEqual(FREE_REQUESTS);
    expect(report).toMatchObject({ retried: 0, dead: 0, lost: 0, requests: record!.requests });
    requests.push(record!.requests);
    stopped = report!.stopped;
  }
  expect(called.sort()).toEqual(jobs.sort());
  // At the very least a run opens its WebSocket, which is a fetch with an upgrade and so one request; its messages are no fetches.
  const least = Math.ceil(500 / (FREE_REQUESTS - 1));
  console.log(
    `cron over NATS, free plan: 500 jobs of one request in ${requests.length} runs (least possible ${least}); requests a run: ${requests.join(" ")}`,
  );
  expect(requests.length).toBeLessThanOrEqual(Math.floor(least * 1.15));
}, 60_000);

test("a consumer's object works off what comes", async () => {
  const jobs = await enqueue(120);
  await workerd.json<ConsumerStatus>("/test/start");
  const deadline = performance.now() + 20_000;
  while (called.length < jobs.length && performance.now() < deadline) await Bun.sleep(10);
  await workerd.json<ConsumerStatus>("/test/stop");
  expect(called.sort()).toEqual(jobs.sort());
}, 30_000);
