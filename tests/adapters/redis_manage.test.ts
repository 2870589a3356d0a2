/** Managing a queue where the numbers are large or the arguments odd. */
import { expect, test } from "bun:test";
import type { BrokerQueue } from "../../src/broker.ts";
import {
  ACK,
  DEAD,
  drain,
  ids,
  idsOf,
  job,
  leaseId,
  put,
  settle,
  take,
} from "../support/conformance_steps.ts";
import { LONG, redisForFile } from "../support/redis_fixture.ts";

const redis = redisForFile();

async function bury(queue: BrokerQueue, wanted: readonly string[]): Promise<void> {
  for (let at = 0; at < wanted.length; at += 1000) await put(queue, ...wanted.slice(at, at + 1000));
  for (let left = wanted.length; left > 0; left -= 1000) await settle(queue, await take(queue, 1000), DEAD);
}

test("a redrive by an id given twice brings its letter once", async () => {
  const queue = await redis.fresh();
  await bury(queue, ["a", "b"]);
  expect(await queue.redrive!({ ids: ["b", "b", "b"], limit: 10 })).toBe(1);
  expect(ids(await drain(queue))).toEqual(["b"]);
  expect(await queue.sizes!()).toMatchObject({ ready: 0, dead: 1 });
});

test("several dead letters of one id are all kept, and an id is not taken for another that it begins", async () => {
  const queue = await redis.fresh();
  await bury(queue, ["a", "a", "ab", "a}", "a"]);
  expect(await queue.redrive!({ ids: ["a"], limit: 2 })).toBe(2);
  expect(await queue.redrive!({ ids: ["a"], limit: 10 })).toBe(1);
  expect(ids(await queue.peek!("dead", 10))).toEqual(["ab", "a}"]);
});

test("thousands of dead letters are seen, redriven in order, and counted", async () => {
  const queue = await redis.fresh();
  const wanted = idsOf("d", 9500);
  await bury(queue, wanted);
  expect(ids(await queue.peek!("dead", 9000))).toEqual(wanted.slice(0, 9000));
  expect(await queue.redrive!({ limit: 2300 })).toBe(2300);
  expect(ids(await drain(queue))).toEqual(wanted.slice(0, 2300));
  expect(await queue.redrive!({ ids: wanted.slice(2300, 3800), limit: Number.POSITIVE_INFINITY })).toBe(1500);
  expect(await queue.redrive!({ limit: Number.POSITIVE_INFINITY })).toBe(5700);
  expect(await queue.sizes!()).toMatchObject({ ready: 7200, dead: 0 });
  expect(await queue.clear!(["ready"])).toBe(7200);
});

test("a lease of a thousand, settled one by one, lost and kept in turns", async () => {
  const queue = await redis.fresh();
  await put(queue, ...idsOf("a", 1000));
  const deliveries = await take(queue, 1000);
  const even = deliveries.filter((_, at) => at % 2 === 0);
  expect(new Set(await settle(queue, even, ACK))).toEqual(new Set(["done"]));
  await queue.abandon!([deliveries[0]!.leaseId]);
  const again = await settle(queue, deliveries, ACK);
  expect([...again]).toEqual(deliveries.map((_, at) => (at % 2 === 0 ? "done" : "lost")));
  expect((await take(queue, 1000)).length).toBe(500);
});

test("looking at ready jobs takes nothing from a lease and leaves what is due where it is", async () => {
  const queue = await redis.fresh();
  await put(queue, job("late", { delayMs: 1 }), "a");
  await Bun.sleep(3);
  expect(ids(await queue.peek!("ready", 10))).toEqual(["a", "late"]);
  await put(queue, "b");
  expect(ids(await take(queue))).toEqual(["a", "b", "late"]);
});

test("a look at more than one answer may bring takes several, in every state, and shows the same", async () => {
  const name = "managed-large";
  const queueOf = async (more: object) => {
    const queue = redis.connect(more).queue(name, LONG);
    await queue.open();
    return queue;
  };
  const queue = await queueOf({});
  const large = (prefix: string, more: object = {}) =>
    idsOf(prefix, 9).map((id) =>
      job(id, { body: `${id}\n${"x".repeat(1_000)}`, headers: { trace: id }, ...more }),
    );
  await put(queue, ...large("dead-"));
  await settle(queue, await take(queue, 9), DEAD);
  await put(queue, ...large("held-", { priority: "low" }), ...large("held-"));
  const held = await take(queue, 18);
  await settle(queue, held.slice(3, 6), ACK);
  await put(queue, ...large("back-"));
  await settle(queue, await take(queue, 9), { kind: "release" });
  await put(
    queue,
    ...large("new-"),
    ...large("low-", { priority: "low" }),
    ...large("late-", { delayMs: 60_000 }),
  );
  const narrow = await queueOf({ maxReplyBytes: 2_500 });
  for (const [state, count] of [
    ["ready", 27],
    ["delayed", 9],
    ["held", 15],
    ["dead", 9],
  ] as const) {
    const whole = await queue.peek!(state, 1_000);
    expect([state, whole.length]).toEqual([state, count]);
    const before = redis.gateway.counts.requests;
    expect(await narrow.peek!(state, 1_000)).toEqual(whole);
    expect(redis.gateway.counts.requests - before).toBeGreaterThan(count / 4);
    expect(await narrow.peek!(state, 5)).toHaveLength(5);
    const heads = await narrow.peek!(state, 1_000, false);
    expect(heads).toEqual(whole.map((one) => ({ ...one, body: "" })));
  }
});

test("a redrive of more than one script may move goes on until all are back, by ids and without", async () => {
  const queue = await redis.fresh();
  const wanted = idsOf("r", 14);
  const jobs = wanted.map((id) => job(id, { body: "x".repeat(1_000_000) }));
  for (const one of jobs) await put(queue, one);
  for (let left = jobs.length; left > 0; ) {
    const some = await take(queue, 100);
    await settle(queue, some, DEAD);
    left -= some.length;
  }
  const before = redis.gateway.counts.requests;
  expect(await queue.redrive!({ ids: wanted.slice(0, 7), limit: 100 })).toBe(7);
  expect(redis.gateway.counts.requests - before).toBe(2);
  expect(await queue.redrive!({ limit: 6 })).toBe(6);
  expect(await queue.redrive!({ limit: 100 })).toBe(1);
  expect(ids(await queue.peek!("ready", 100, false))).toEqual(wanted);
});

test("a limit of nothing is nothing", async () => {
  const queue = await redis.fresh();
  await bury(queue, ["a"]);
  for (const limit of [0, -1, Number.NaN]) {
    expect(await queue.redrive!({ limit })).toBe(0);
    expect(await queue.peek!("dead", limit)).toEqual([]);
  }
  expect(await queue.peek!("dead", Number.POSITIVE_INFINITY)).toHaveLength(1);
  await queue.abandon!([]);
  expect(await queue.renew([])).toEqual([]);
  expect(await queue.renew([leaseId()])).toEqual(["lost"]);
});
