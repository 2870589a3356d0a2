/** What a batch costs in Redis commands and requests, and that it does not grow with batch or backlog. */
import { expect, test } from "bun:test";
import type { BrokerQueue, Delivery } from "../../src/broker.ts";
import { ACK, idsOf, job, leaseId, put } from "../support/conformance_steps.ts";
import { LONG, redisForFile } from "../support/redis_fixture.ts";

/** The commands of an exchange that acks a whole batch and claims a full one, its EVALSHA not among them. */
const COMMANDS_A_BATCH = 11;

const redis = redisForFile();

async function fill(queue: BrokerQueue, count: number, more: object = {}): Promise<void> {
  for (let at = 0; at < count; at += 1000) {
    await put(queue, ...idsOf(`j${at}-`, Math.min(1000, count - at)).map((id) => job(id, more)));
  }
}

/** How often each command ran since the last reset; nested ones count as well. */
async function commands(): Promise<Map<string, number>> {
  const text = String(await redis.server.command("INFO", "commandstats"));
  const counts = new Map<string, number>();
  for (const [, name, calls] of text.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)) {
    if (name !== "config|resetstat" && name !== "info") counts.set(name as string, Number(calls));
  }
  return counts;
}

async function work(queue: BrokerQueue, batch: number, batches: number): Promise<Delivery[]> {
  let held: readonly Delivery[] = [];
  const all: Delivery[] = [];
  for (let n = 0; n < batches; n++) {
    const reply = await queue.exchange!({
      settle: held.map((delivery) => ({ delivery, verdict: ACK })),
      renew: [],
      claim: { leaseId: leaseId(), max: batch, waitMs: 0 },
    });
    expect(reply.settled.every((result) => result === "done")).toBe(true);
    held = reply.claimed?.deliveries ?? [];
    all.push(...held);
  }
  return all;
}

/** Commands and script calls an exchange takes in steady state. */
async function cost(queue: BrokerQueue, batch: number, batches: number): Promise<[number, number]> {
  await work(queue, batch, 2);
  await queue.abandon!(["none"]);
  let held = await queue.claim({ leaseId: leaseId(), max: batch, waitMs: 0 });
  await redis.server.command("CONFIG", "RESETSTAT");
  for (let n = 0; n < batches; n++) {
    const reply = await queue.exchange!({
      settle: held.deliveries.map((delivery) => ({ delivery, verdict: ACK })),
      renew: [],
      claim: { leaseId: leaseId(), max: batch, waitMs: 0 },
    });
    held = reply.claimed!;
    expect(held.deliveries.length).toBe(batch);
  }
  const counts = await commands();
  const scripts = (counts.get("evalsha") ?? 0) + (counts.get("eval") ?? 0);
  const total = [...counts.values()].reduce((sum, calls) => sum + calls, 0);
  return [(total - scripts) / batches, scripts / batches];
}

test(`a batch acked whole takes ${COMMANDS_A_BATCH} commands and one script call, whatever its size`, async () => {
  const queue = redis.connect().queue("sizes", LONG);
  await queue.open();
  await fill(queue, 20_000);
  for (const batch of [1, 16, 256, 1000]) {
    expect(await cost(queue, batch, 10)).toEqual([COMMANDS_A_BATCH, 1]);
  }
});

test("the backlog does not matter: 100,000 ready, 100,000 delayed, 10,000 dead, hundreds of leases", async () => {
  const queue = redis.connect().queue("backlog", LONG);
  await queue.open();
  await fill(queue, 10_000);
  for (let n = 0; n < 10; n++) {
    const { deliveries } = await queue.claim({ leaseId: leaseId(), max: 1000, waitMs: 0 });
    await queue.settle(deliveries.map((delivery) => ({ delivery, verdict: { kind: "dead", error: "no" } })));
  }
  await fill(queue, 100_000);
  await fill(queue, 100_000, { delayMs: 3_600_000 });
  for (let n = 0; n < 300; n++) await queue.claim({ leaseId: leaseId(), max: 1, waitMs: 0 });
  expect(await queue.sizes!()).toMatchObject({ ready: 99_700, delayed: 100_000, held: 300, dead: 10_000 });
  expect(await cost(queue, 16, 20)).toEqual([COMMANDS_A_BATCH, 1]);
}, 60_000);

test("1,600 jobs in batches of 16: at most 0.07 requests a job and 1.1 script calls a batch", async () => {
  const broker = redis.connect();
  const queue = broker.queue("requests", LONG);
  await queue.open();
  await fill(queue, 1600);
  redis.gateway.resetCounts();
  await redis.server.command("CONFIG", "RESETSTAT");
  const done = await work(queue, 16, 101);
  expect(done.length).toBe(1600);
  const { requests } = redis.gateway.counts;
  expect(requests / 1600).toBeLessThanOrEqual(0.07);
  const counts = await commands();
  const scripts = (counts.get("evalsha") ?? 0) + (counts.get("eval") ?? 0);
  expect(scripts / 100).toBeLessThanOrEqual(1.1);
});

test("an empty claim takes no more, and an idle queue keeps nothing but what is remembered for a minute", async () => {
  const queue = redis.connect().queue("idle", LONG);
  await queue.open();
  await queue.claim({ leaseId: leaseId(), max: 16, waitMs: 0 });
  await redis.server.command("CONFIG", "RESETSTAT");
  const id = leaseId();
  await queue.claim({ leaseId: id, max: 16, waitMs: 0 });
  const total = [...(await commands()).values()].reduce((sum, calls) => sum + calls, 0);
  expect(total - 1).toBeLessThanOrEqual(COMMANDS_A_BATCH);
  const ttl = (await redis.server.command("PTTL", `eddy:{idle}:lease:${id}`)) as number;
  expect(ttl).toBeGreaterThan(50_000);
  expect(ttl).toBeLessThanOrEqual(60_000);
});
