/** The guards against a Redis that loses jobs: an evicting policy, evictions, a flush, and a full memory. */
import { expect, test } from "bun:test";
import { RedisBroker, type RedisBrokerOptions } from "../../adapters/redis/mod.ts";
import { startGateway } from "../../runtimes/bun/gateway/gateway.ts";
import type { BrokerQueue } from "../../src/broker.ts";
import { BrokerError, BrokerRefusedError } from "../../src/errors.ts";
import {
  ACK,
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
import { startRedisOverHttp } from "../support/gateway.ts";
import { LONG, redisForEachTest } from "../support/redis_fixture.ts";

const redis = redisForEachTest();

function queueOf(options: Partial<RedisBrokerOptions> = {}, name = "guarded"): BrokerQueue {
  return redis.connect(options).queue(name, LONG);
}

async function opened(options: Partial<RedisBrokerOptions> = {}, name = "guarded"): Promise<BrokerQueue> {
  const queue = queueOf(options, name);
  await queue.open();
  return queue;
}

async function refusal(promise: Promise<unknown>): Promise<BrokerRefusedError> {
  const error = await promise.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(BrokerRefusedError);
  return error as BrokerRefusedError;
}

test("open refuses each policy that evicts, and names the setting and the mend", async () => {
  for (const policy of ["allkeys-lru", "allkeys-random", "volatile-lru", "volatile-ttl"]) {
    await redis.server.command("CONFIG", "SET", "maxmemory-policy", policy);
    const { message } = await refusal(opened());
    expect(message).toContain(`maxmemory-policy is ${policy}`);
    expect(message).toContain("noeviction");
  }
  await opened({ onEvictions: "ignore" });
  await redis.server.command("CONFIG", "SET", "maxmemory-policy", "noeviction");
  await opened();
});

test("a policy changed under a running worker stops it, and what it claimed is given back", async () => {
  const queue = await opened({ verifyEveryMs: 1 });
  await put(queue, "a", "b");
  const [a] = await take(queue, 1);
  await redis.server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
  await Bun.sleep(2);
  const first = await refusal(take(queue));
  expect(first.message).toContain("maxmemory-policy");
  // The handle stays shut, whatever is asked of it.
  await redis.server.command("CONFIG", "SET", "maxmemory-policy", "noeviction");
  expect(await refusal(take(queue))).toBe(first);
  await refusal(put(queue, "c"));
  await refusal(queue.open());
  await refusal(settle(queue, [a!], ACK));
  const next = await opened();
  const [delivery] = await take(next);
  expect([delivery?.id, delivery?.attempt, delivery?.suspect]).toEqual(["b", 1, false]);
});

test("evictions that happen under a running worker stop it; without the guard it goes on", async () => {
  const queue = await opened({ verifyEveryMs: 1 });
  const careless = await opened({ verifyEveryMs: 1, onEvictions: "ignore" });
  await put(queue, "a");
  const { server } = redis;
  await server.command("CONFIG", "SET", "maxmemory-policy", "volatile-ttl");
  for (let n = 0; n < 50; n++) await server.command("SET", `other${n}`, "x".repeat(10_000), "EX", "1000");
  await server.command("CONFIG", "SET", "maxmemory", "1mb");
  while (!/evicted_keys:[1-9]/.test(String(await server.command("INFO", "stats")))) await Bun.sleep(5);
  await server.command("CONFIG", "SET", "maxmemory", "0");
  await server.command("CONFIG", "SET", "maxmemory-policy", "noeviction");
  const { message } = await refusal(take(queue));
  expect(message).toContain("evicted_keys");
  expect(ids(await take(careless))).toEqual(["a"]);
  // Whoever opens later counts from there.
  const later = await opened({ verifyEveryMs: 1 });
  await Bun.sleep(2);
  expect(await take(later)).toEqual([]);
});

test("a flush stops every handle that saw the queue, and none of them founds it anew", async () => {
  const worker = await opened();
  const idle = await opened();
  const producer = queueOf();
  await put(producer, "a", "b");
  const held = await take(worker, 1);
  await redis.server.command("FLUSHALL");
  const { message } = await refusal(
    worker.exchange!({
      settle: held.map((delivery) => ({ delivery, verdict: ACK })),
      renew: [],
      claim: { leaseId: leaseId(), max: 1, waitMs: 0 },
    }),
  );
  expect(message).toContain("vanished");
  await refusal(take(worker));
  await refusal(settle(worker, held, ACK));
  await refusal(worker.open());
  await refusal(idle.renew([leaseId()]));
  await refusal(idle.sizes!());
  await refusal(put(producer, "c"));
  expect(await redis.server.command("DBSIZE")).toBe(0);

  // A person looks, and starts again: a new handle founds the queue, the old ones stay shut.
  const next = await opened();
  await put(next, "d");
  await refusal(take(worker));
  await refusal(put(producer, "e"));
  expect(ids(await drain(next))).toEqual(["d"]);
});

test("a queue founded anew by another producer is noticed by a worker that saw the one before", async () => {
  const worker = await opened();
  await redis.server.command("FLUSHALL");
  const producer = queueOf();
  await put(producer, "new");
  await refusal(take(worker));
  expect(ids(await take(await opened()))).toEqual(["new"]);
});

test("the loss of the mark alone counts as a loss", async () => {
  const worker = await opened();
  await put(worker, "a");
  await redis.server.command("DEL", "eddy:{guarded}:queue");
  await refusal(take(worker));
});

test("a fresh queue, a clear, a second worker and an empty queue alarm nobody", async () => {
  const worker = await opened();
  expect(await take(worker)).toEqual([]);
  await put(worker, "a", job("b", { delayMs: 60_000 }));
  const second = await opened();
  await second.clear!(["ready", "delayed", "dead"]);
  expect(await take(worker)).toEqual([]);
  await put(queueOf(), "c");
  expect(ids(await drain(worker))).toEqual(["c"]);
  await worker.open();
  expect(await take(second)).toEqual([]);
});

test("a Redis restarted without its data is noticed; with its data it goes on", async () => {
  const worker = await opened();
  await put(worker, "a");
  await redis.server.kill();
  await redis.server.restart();
  await refusal(take(worker));

  const kept = await startRedisOverHttp({ persist: true });
  const queue = kept.connect().queue("kept", LONG);
  await queue.open();
  await put(queue, "a", "b");
  const held = await take(queue, 1);
  await kept.server.kill();
  await expect(take(queue)).rejects.toBeInstanceOf(BrokerError);
  await kept.server.restart();
  expect(await settle(queue, held, ACK)).toEqual(["done"]);
  expect(ids(await take(queue))).toEqual(["b"]);
  await kept.stop();
});

test("a full Redis takes no job in, and can still be worked empty", async () => {
  const queue = await opened();
  await put(queue, ...idsOf("a", 40), job("later", { delayMs: 1 }));
  const mixed = await take(queue, 4);
  const whole = await take(queue, 3);
  await redis.server.command("CONFIG", "SET", "maxmemory", "1");
  const error = await put(queue, "b", job("c", { dedupe: true })).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(BrokerError);
  expect(error).not.toBeInstanceOf(BrokerRefusedError);
  expect((error as Error).message).toContain("OOM");
  expect((error as BrokerError).unchanged).toBe(true);
  expect(await queue.renew([mixed[0]!.leaseId])).toEqual(["held"]);
  expect(await settle(queue, mixed.slice(0, 1), RETRY)).toEqual(["done"]);
  expect(await settle(queue, mixed.slice(1, 2), RELEASE)).toEqual(["done"]);
  expect(await settle(queue, mixed.slice(2, 3), { kind: "dead", error: "no" })).toEqual(["done"]);
  expect(await settle(queue, mixed.slice(3), ACK)).toEqual(["done"]);
  expect(await settle(queue, whole, ACK)).toEqual(["done", "done", "done"]);
  await queue.exchange!({ settle: [], renew: [], remember: "memo" });
  await queue.abandon!([leaseId(), (await take(queue, 1))[0]!.leaseId]);
  const done = await drain(queue);
  // 40 and the delayed one, less three acked whole, one acked and one dead.
  expect(done.length).toBe(36);
  expect(await queue.redrive!({ limit: 10 })).toBe(1);
  expect((await drain(queue)).length).toBe(1);
  await queue.pause!();
  await queue.resume!();
  await redis.server.command("CONFIG", "SET", "maxmemory", "0");
  await put(queue, job("c", { dedupe: true }));
  expect(ids(await drain(queue))).toEqual(["c"]);
});

test("a Redis without an append-only file is warned of, once a connection", async () => {
  const warnings: string[] = [];
  const onWarning = (text: string) => warnings.push(text);
  const broker = redis.connect({ onWarning });
  for (const name of ["one", "two", "one"]) await broker.queue(name, LONG).open();
  expect(warnings).toEqual([expect.stringContaining("set appendonly to yes")]);
  expect(warnings[0]).toContain(`Redis at ${redis.gateway.url} keeps no append-only file`);
  await redis.server.command("CONFIG", "SET", "appendonly", "yes");
  await opened({ onWarning });
  expect(warnings.length).toBe(1);
});

test("what is lost by a restart from a snapshot is not noticed afterwards: hence the warning", async () => {
  const worker = await opened();
  await put(worker, "a");
  await redis.server.command("SAVE");
  await put(worker, "b");
  await redis.server.kill();
  await redis.server.restart();
  expect(ids(await drain(worker))).toEqual(["a"]);
});

test("where nothing can be read of the policy, it says so and runs", async () => {
  await redis.server.command(
    "ACL",
    "SETUSER",
    "limited",
    "on",
    ">pw",
    "~*",
    "&*",
    "+@all",
    "-info",
    "-config",
  );
  const address = redis.server.url.replace("redis://", "redis://limited:pw@");
  const gateway = startGateway({ redis: address, token: "t" });
  const warnings: string[] = [];
  const options = {
    url: gateway.url,
    token: "t",
    verifyEveryMs: 1,
    onWarning: (text: string) => warnings.push(text),
  };
  const queue = new RedisBroker(options).queue("guarded", LONG);
  await queue.open();
  await put(queue, "a");
  await Bun.sleep(2);
  expect(ids(await drain(queue))).toEqual(["a"]);
  expect(warnings.length).toBe(1);
  expect(warnings[0]).toContain("maxmemory-policy and evicted_keys");
  await gateway.stop();
});

test("where a script may not read INFO, the command is asked for the policy", async () => {
  await redis.server.command("ACL", "SETUSER", "limited", "on", ">pw", "~*", "&*", "+@all", "-info");
  await redis.server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu");
  const gateway = startGateway({
    redis: redis.server.url.replace("redis://", "redis://limited:pw@"),
    token: "t",
  });
  const queue = new RedisBroker({ url: gateway.url, token: "t", onWarning: () => {} }).queue("guarded", LONG);
  await refusal(queue.open());
  await gateway.stop();
});
