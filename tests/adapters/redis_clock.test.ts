/** Leases, delays and windows by the real clock: in their own units, from the server's now. */
import { expect, test } from "bun:test";
import type { BrokerQueue } from "../../src/broker.ts";
import { ACK, claim, ids, job, put, settle, take } from "../support/conformance_steps.ts";
import { LONG, redisForFile } from "../support/redis_fixture.ts";

const SHORT_MS = 400;

const redis = redisForFile();

async function opened(name: string, more: object = {}): Promise<BrokerQueue> {
  const queue = redis.connect().queue(name, { ...LONG, ...more });
  await queue.open();
  return queue;
}

/** Looks again and again until something comes; answers it and how long that took. */
async function awaitNext(queue: BrokerQueue): Promise<{ id: string; suspect: boolean; tookMs: number }> {
  const start = performance.now();
  for (;;) {
    const [delivery] = await take(queue, 1);
    const tookMs = performance.now() - start;
    if (delivery !== undefined) return { id: delivery.id, suspect: delivery.suspect, tookMs };
    if (tookMs > 10_000) throw new Error("nothing came");
    await Bun.sleep(5);
  }
}

test("a lease runs out when its time is over, not before", async () => {
  const queue = await opened("lease", { leaseMs: SHORT_MS });
  await put(queue, "a");
  await take(queue);
  const { nextDueMs } = await claim(queue, 1);
  expect(nextDueMs).toBeLessThanOrEqual(SHORT_MS);
  const { id, suspect, tookMs } = await awaitNext(queue);
  expect([id, suspect]).toEqual(["a", true]);
  // What came before the first look is not in it: two requests, with a margin for a slow machine below.
  expect(tookMs).toBeGreaterThan(SHORT_MS / 4);
});

test("a delayed job comes when it is due, not before", async () => {
  const queue = await opened("delay");
  await put(queue, job("a", { delayMs: SHORT_MS }));
  const { id, tookMs } = await awaitNext(queue);
  expect(id).toBe("a");
  expect(tookMs).toBeGreaterThan(SHORT_MS / 4);
});

test("an id is free again when its window is over", async () => {
  const queue = await opened("window", { dedupeWindowMs: SHORT_MS });
  const enqueue = async () => (await put(queue, job("a", { dedupe: true })))[0]?.duplicate;
  expect(await enqueue()).toBe(false);
  const deadline = performance.now() + 10_000;
  while ((await enqueue()) !== false) {
    if (performance.now() > deadline) throw new Error("it stays taken");
    await Bun.sleep(5);
  }
  const deliveries = await take(queue);
  expect(ids(deliveries)).toEqual(["a", "a"]);
  expect(await settle(queue, deliveries, ACK)).toEqual(["done", "done"]);
});

test("times are Unix milliseconds of the server", async () => {
  const queue = await opened("times");
  const [seconds, micros] = (await redis.server.command("TIME")) as [string, string];
  const before = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  await put(queue, "a", job("b", { delayMs: 5000 }));
  const [delivery] = await take(queue);
  const [delayed] = await queue.peek!("delayed", 1);
  expect(delivery!.enqueuedAt).toBeGreaterThanOrEqual(before);
  expect(delivery!.enqueuedAt).toBeLessThan(before + 60_000);
  expect(delayed!.dueAt).toBe(delayed!.enqueuedAt + 5000);
});
