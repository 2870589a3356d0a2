/** What comes from elsewhere: producers with one plain command, and records that are none. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import type { BrokerQueue } from "../../src/broker.ts";
import { isJobId } from "../../src/broker.ts";
import { queue as defineQueue, defineWorker, startWorker } from "../../src/mod.ts";
import {
  ACK,
  bytes,
  drain,
  ids,
  idsOf,
  job,
  leaseId,
  put,
  RELEASE,
  RETRY,
  settle,
  take,
} from "../support/conformance_steps.ts";
import { passRedisTime } from "../support/redis_clock.ts";
import { LONG, redisForFile } from "../support/redis_fixture.ts";

const redis = redisForFile();

const push = (queue: BrokerQueue, key: string, ...values: (string | Uint8Array)[]) =>
  redis.server.command("RPUSH", `eddy:{${queue.name}}:${key}`, ...values);

test("one RPUSH enqueues; the bodies come exactly, in order, each with an id of its own", async () => {
  const queue = await redis.fresh();
  const before = Date.now();
  await push(queue, "inbox", "first", '{"n":9007199254740993}');
  await push(queue, "inbox", "");
  expect(await queue.sizes!()).toMatchObject({ ready: 3 });
  const deliveries = await take(queue);
  expect(deliveries.map((one) => one.body)).toEqual(["first", '{"n":9007199254740993}', ""]);
  expect(new Set(ids(deliveries)).size).toBe(3);
  for (const one of deliveries) {
    expect(isJobId(one.id)).toBe(true);
    expect(one).toMatchObject({ attempt: 1, suspect: false, priority: "normal", headers: {} });
    expect(one.enqueuedAt).toBeGreaterThanOrEqual(before - 1000);
    expect(one.broken).toBeUndefined();
  }
  expect(await settle(queue, deliveries, ACK)).toEqual(["done", "done", "done"]);
});

test("any bytes come exactly, again after a retry, and as a dead letter", async () => {
  const queue = await redis.fresh();
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uint8Array({ maxLength: 60 }), { minLength: 1, maxLength: 8 }),
      async (bodies) => {
        await push(queue, "inbox", ...bodies);
        const first = await take(queue);
        expect(first.map((one) => bytes(one.body))).toEqual(bodies);
        await settle(queue, first, RETRY);
        const second = await take(queue);
        expect(second.map((one) => bytes(one.body))).toEqual(bodies);
        await settle(queue, second, { kind: "dead", error: "no" });
        expect((await queue.peek!("dead", 100)).map((one) => bytes(one.body))).toEqual(bodies);
        await queue.clear!(["dead"]);
      },
    ),
    { numRuns: 40 },
  );
});

test("one larger than any request brings is a dead letter with its reason, and nothing waits behind it", async () => {
  const narrow = { maxBodyBytes: 50_000, maxRequestBytes: 200_000, maxReplyBytes: 100_000 };
  const queue = redis.connect(narrow).queue("producer-large", LONG);
  await queue.open();
  const [text, binary] = [new Uint8Array(200_000).fill(120), new Uint8Array(70_000).fill(255)];
  for (const large of [text, binary]) {
    for (const body of [new Uint8Array([49]), large, new Uint8Array([50])]) {
      await redis.server.command("RPUSH", "eddy:{producer-large}:inbox", body);
    }
    const small = async () => (await drain(queue)).map((one) => String(one.body));
    expect(await small()).toEqual(["1", "2"]);
    expect(await queue.peek!("dead", 10, false)).toMatchObject([
      {
        attempts: 0,
        error: expect.stringMatching(/^The job has 2[01]\d{4} bytes, more than a request brings \(200000\)/),
      },
    ]);
    // Put back it stands in nobody's way either.
    expect(await queue.redrive!({ limit: 10 })).toBe(1);
    await put(queue, job("c", { body: "3", priority: "low" }));
    expect(await small()).toEqual(["3"]);
    expect(await queue.sizes!()).toMatchObject({ ready: 0, held: 0, dead: 1 });
    expect(bytes((await queue.peek!("dead", 10))[0]!.body)).toEqual(large);
    await queue.clear!(["dead"]);
  }
  // The largest that is let in comes through.
  await put(queue, job("d", { body: new Uint8Array(50_000).fill(255) }));
  expect(bytes((await take(queue))[0]!.body)).toHaveLength(50_000);
});

test("texts in every script, and what merely looks like one", async () => {
  const queue = await redis.fresh();
  const bodies = [
    ...["ß", "€uro", "\u{1F680}", "\u{10FFFF}", "\uFEFFx", "\uD7FF\uE000", "a\u0000b", "%41%"].map((text) =>
      Buffer.from(text),
    ),
    ...[
      [0xc0, 0x80],
      [0xe0, 0x80, 0x80],
      [0xed, 0xa0, 0x80],
      [0xf0, 0x80, 0x80, 0x80],
      [0xf4, 0x90, 0x80, 0x80],
      [0xf5],
      [0xe2, 0x82],
    ].map((list) => Buffer.from(list)),
  ].map((buffer) => new Uint8Array(buffer));
  await push(queue, "inbox", ...bodies);
  expect((await queue.peek!("ready", 100)).map((one) => bytes(one.body))).toEqual(bodies);
  const deliveries = await take(queue);
  expect(deliveries.map((one) => bytes(one.body))).toEqual(bodies);
  // What is UTF-8 stays a text; the rest comes as bytes.
  expect(deliveries.map((one) => typeof one.body === "string")).toEqual(bodies.map((_, n) => n < 8));
});

test("a backlog in the inbox is worked off in order beside what is enqueued", async () => {
  const queue = await redis.fresh();
  await push(queue, "inbox", ...idsOf("x", 350));
  await put(queue, "enqueued", job("urgent", { priority: "high" }));
  const bodies = (await drain(queue)).map((one) => one.body);
  expect(bodies[0]).toBe("urgent");
  expect(bodies.length).toBe(352);
  expect(bodies.filter((body) => String(body).startsWith("x"))).toEqual(idsOf("x", 350));
});

/** How many bodies lie in the inbox still. */
const inInbox = (queue: BrokerQueue) => redis.server.command("LLEN", `eddy:{${queue.name}}:inbox`);
const MEGABYTE = 1_048_576;

test("large bodies leave the inbox a few at a time, and a claim tells that more are there", async () => {
  const queue = await redis.fresh();
  // One megabyte is beyond the bound by itself: each claim moves one, and never none.
  await push(queue, "inbox", ...idsOf("x", 8).map((id) => id.padEnd(MEGABYTE, "ß".repeat(7))));
  const bodies: string[] = [];
  for (let left = 7; left >= 0; left--) {
    const reply = await queue.claim({ leaseId: leaseId(), max: 100, waitMs: 0 });
    expect([reply.deliveries.length, await inInbox(queue)]).toEqual([1, left]);
    if (left > 0) expect(reply.nextDueMs).toBe(0);
    else expect(reply.nextDueMs).toBeGreaterThan(0);
    bodies.push(...reply.deliveries.map((one) => String(one.body).slice(0, 3)));
    await settle(queue, reply.deliveries, ACK);
  }
  expect(bodies.map((body) => body.replace(/ß.*/, ""))).toEqual(idsOf("x", 8));
  // Of smaller ones as many as make up 256 KiB, text or not.
  const random = crypto.getRandomValues(new Uint8Array(65_536));
  await push(queue, "inbox", ...Array.from({ length: 10 }, () => random));
  expect((await take(queue, 100)).map((one) => bytes(one.body))).toEqual([random, random, random, random]);
  expect(await inInbox(queue)).toBe(6);
  expect((await drain(queue)).length).toBe(6);
}, 30_000);

test("a look at a large inbox takes out a few megabytes at most, and shows the first of it", async () => {
  const queue = await redis.fresh();
  await push(queue, "inbox", ...idsOf("x", 8).map((id) => id.padEnd(MEGABYTE, ".")));
  const seen = await queue.peek!("ready", 100);
  expect(seen.map((one) => String(one.body).slice(0, 2))).toEqual(["x1"]);
  expect(await queue.sizes!()).toMatchObject({ ready: 8 });
});

test("large jobs that come due, or whose lease ran out, are moved a few at a time as well", async () => {
  const queue = await redis.fresh();
  const body = "x".repeat(200_000);
  await put(queue, ...idsOf("d", 10).map((id) => job(id, { body, delayMs: 1000 })));
  await passRedisTime(redis.server, 2000);
  const delayed = async () => redis.server.command("ZCARD", `eddy:{${queue.name}}:delayed`);
  const first = await queue.claim({ leaseId: leaseId(), max: 100, waitMs: 0 });
  expect([ids(first.deliveries), first.nextDueMs, await delayed()]).toEqual([["d1", "d2"], 0, 8]);
  for (const left of [6, 4, 2, 0]) {
    expect((await take(queue, 100)).length).toBe(2);
    expect(await delayed()).toBe(left);
  }
  await passRedisTime(redis.server, 61_000);
  const again = await queue.claim({ leaseId: leaseId(), max: 100, waitMs: 0 });
  // Two leases of two jobs each.
  expect([ids(again.deliveries), again.nextDueMs]).toEqual([["d1", "d2"], 0]);
});

test("a worker empties a large inbox without waiting for a look", async () => {
  const queue = defineQueue(redis.name());
  await redis.server.command(
    "RPUSH",
    `eddy:{${queue.name}}:inbox`,
    ...idsOf("x", 12).map((id) => JSON.stringify(id.padEnd(300_000, "."))),
  );
  const all = Promise.withResolvers<void>();
  let seen = 0;
  const definition = defineWorker({
    queues: [
      queue.handle(() => {
        seen += 1;
        if (seen === 12) all.resolve();
      }),
    ],
  });
  const looks: number[] = [];
  const broker = redis.connect();
  const worker = await startWorker(definition, {
    broker,
    platform: bunPlatform(),
    on: (event) => {
      if (event.type === "idle" && seen < 12) looks.push(event.nextLookMs);
    },
  });
  await all.promise;
  await worker.stop();
  await broker.close();
  expect(looks).toEqual([]);
});

test("a producer that publishes wakes a worker at once", async () => {
  const queue = await redis.fresh();
  const woken = Promise.withResolvers<void>();
  const watch = await queue.watch!(woken.resolve, woken.reject);
  await push(queue, "inbox", "a");
  await redis.server.command("PUBLISH", `eddy:{${queue.name}}:wake`, "1");
  await woken.promise;
  expect((await take(queue))[0]?.body).toBe("a");
  await watch.close();
});

test("a record that is none is delivered as broken and takes nothing with it", async () => {
  const queue = await redis.fresh();
  await put(queue, "a");
  await push(queue, "ready:1", "garbage", "garbage", Uint8Array.of(0xff, 0xfe, 1), "5|x|y|z");
  await put(queue, "b");
  const deliveries = await take(queue);
  expect(deliveries.map((one) => one.broken !== undefined)).toEqual([false, true, true, true, true, false]);
  expect(deliveries.every((one) => isJobId(one.id))).toBe(true);
  expect(new Set(ids(deliveries)).size).toBe(6);
  const broken = deliveries.filter((one) => one.broken !== undefined);
  expect(broken[0]?.body).toBe("garbage");
  expect(
    await settle(
      queue,
      deliveries.filter((one) => one.broken === undefined),
      ACK,
    ),
  ).toEqual(["done", "done"]);
  expect(await settle(queue, broken, { kind: "dead", error: "malformed" })).toEqual([
    "done",
    "done",
    "done",
    "done",
  ]);
  const dead = await queue.peek!("dead", 10);
  expect(ids(dead)).toEqual(ids(broken));
  expect(dead.map((one) => bytes(one.body))).toEqual([
    bytes("garbage"),
    bytes("garbage"),
    Uint8Array.of(0xff, 0xfe, 1),
    bytes("5|x|y|z"),
  ]);
  // What was malformed stays so: a redrive does not make a job of it.
  expect(await queue.redrive!({ ids: [broken[2]!.id], limit: 9 })).toBe(1);
  const [again] = await take(queue);
  expect(again?.broken).toBeString();
  expect(bytes(again?.body ?? "")).toEqual(Uint8Array.of(0xff, 0xfe, 1));
});

test("malformed records come back from a release, a retry and a lost lease, none the fewer", async () => {
  const queue = await redis.fresh();
  await push(queue, "ready:1", "garbage", "garbage", "garbage");
  await redis.server.command("ZADD", `eddy:{${queue.name}}:delayed`, "1", "late garbage");
  await settle(queue, await take(queue), RELEASE);
  await settle(queue, await take(queue), RETRY);
  await take(queue);
  await passRedisTime(redis.server, 61_000);
  const deliveries = await take(queue);
  expect(deliveries.map((one) => one.body).sort()).toEqual(["garbage", "garbage", "garbage", "late garbage"]);
  expect(deliveries.every((one) => one.broken !== undefined && one.suspect)).toBe(true);
});

test("a lease whose list is gone does not stop the queue", async () => {
  const queue = await redis.fresh();
  await put(queue, "a", "b");
  const [a] = await take(queue, 1);
  await redis.server.command("DEL", `eddy:{${queue.name}}:lease:${a!.leaseId}`);
  await passRedisTime(redis.server, 61_000);
  expect(ids(await take(queue))).toEqual(["b"]);
  expect(await settle(queue, [a!], ACK)).toEqual(["lost"]);
});

test("all keys of a queue share its hash tag, under the prefix that was chosen", async () => {
  const queue = redis.connect({ prefix: "own.prefix" }).queue("tagged", LONG);
  await queue.open();
  await put(queue, "a", "b", "c", job("d", { dedupe: true }), job("e", { delayMs: 1000 }));
  await push(queue, "x", "y");
  const held = await take(queue);
  await queue.settle([
    { delivery: held[0]!, verdict: { kind: "dead", error: "" } },
    { delivery: held[1]!, verdict: RELEASE },
  ]);
  const keys = (await redis.server.command("KEYS", "own.prefix:*")) as string[];
  expect(keys.length).toBeGreaterThan(8);
  for (const key of keys) expect(key).toStartWith("own.prefix:{tagged}:");
});
