/** The gateway as `@upstash/redis` sees it: the real client, against a real Redis. */
import { beforeEach, describe, expect, test } from "bun:test";
import { Redis } from "@upstash/redis/cloudflare";
import { redisForFile } from "../support/redis_fixture.ts";

const stage = redisForFile({ token: "secret" });
beforeEach(async () => {
  await stage.server.command("FLUSHALL");
});

for (const base64 of [true, false]) {
  describe(base64 ? "base64 answers" : "plain answers", () => {
    const connect = (auto = false) =>
      new Redis({
        url: stage.gateway.url,
        token: "secret",
        retry: { retries: 0 },
        automaticDeserialization: false,
        enableAutoPipelining: auto,
        ...(base64 ? {} : { responseEncoding: false as const }),
      });

    test("strings come back as they were, whatever is in them", async () => {
      const redis = connect();
      const texts = [
        "plain",
        "",
        "OK",
        "T0s=",
        "null",
        "123",
        "line\r\nline",
        '"\\/ \u0000\u0001\u2028',
        "ß€😀",
      ];
      for (const text of texts) {
        expect(await redis.set("key", text)).toBe("OK");
        expect(await redis.get<string>("key")).toBe(text);
      }
      expect(await redis.get("none")).toBe(null);
    });

    test("a large value survives many chunks", async () => {
      const redis = connect();
      const text = "0123456789abcdeß".repeat(100_000);
      await redis.set("large", text);
      expect(await redis.get<string>("large")).toBe(text);
      await redis.rpush("list", ...Array.from({ length: 40 }, (_, n) => `${n}:${"x".repeat(n * 1500)}`));
      const list = await redis.lrange("list", 0, -1);
      expect(list.length).toBe(40);
      expect(list[39]).toBe(`39:${"x".repeat(39 * 1500)}`);
    });

    test("hashes, sorted sets, lists, counters", async () => {
      const redis = connect();
      expect(await redis.hset("hash", { one: "1", two: "zwei" })).toBe(2);
      expect(await redis.hmget("hash", "two", "none")).toEqual(["zwei", null] as never);
      expect(await redis.zadd("set", { score: 1, member: "a" }, { score: 2.5, member: "b" })).toBe(2);
      expect(await redis.zrange<string[]>("set", 0, -1, { withScores: true })).toEqual([
        "a",
        "1",
        "b",
        "2.5",
      ]);
      expect(await redis.rpush("queue", "x", "y")).toBe(2);
      expect(await redis.lpop<string>("queue")).toBe("x");
      expect(await redis.incrby("count", 41)).toBe(41);
      expect(await redis.incr("count")).toBe(42);
    });

    test("scripts, by text and by digest, with nested answers", async () => {
      const redis = connect();
      const script = redis.createScript<unknown[]>("return {KEYS[1], ARGV[1], 7, {'in', {'deeper'}}, false}");
      expect(await script.exec(["k"], ["ä"])).toEqual(["k", "ä", 7, ["in", ["deeper"]], null]);
      expect(await script.exec(["k"], ["b"])).toEqual(["k", "b", 7, ["in", ["deeper"]], null]);
      await redis.scriptFlush();
      await expect(redis.evalsha("0".repeat(40), [], [])).rejects.toThrow("NOSCRIPT");
      expect(await script.exec(["k"], ["c"])).toEqual(["k", "c", 7, ["in", ["deeper"]], null]);
      expect(await redis.eval("return redis.status_reply('PONG')", [], [])).toBe("PONG");
    });

    test("a pipeline answers each command, errors among them", async () => {
      const redis = connect();
      const results = await redis
        .pipeline()
        .set("a", "1")
        .hget("a", "field")
        .get("a")
        .exec({ keepErrors: true });
      expect(results.map((entry) => entry.result as unknown)).toEqual(["OK", undefined, "1"]);
      expect(results[1]?.error).toStartWith("WRONGTYPE");
      expect(results[0]?.error).toBeUndefined();
    });

    test("a transaction runs whole or not at all", async () => {
      const redis = connect();
      expect(await redis.multi().set("a", "x").incr("n").get("a").exec<unknown[]>()).toEqual(["OK", 1, "x"]);
      const wrong = redis.multi().set("a", "changed");
      (wrong as unknown as { chain(command: object): unknown }).chain({
        command: ["GET"],
        deserialize: (x: unknown) => x,
      });
      await expect(wrong.exec()).rejects.toThrow("wrong number of arguments");
      expect(await redis.get<string>("a")).toBe("x");
    });

    test("automatic pipelining", async () => {
      const redis = connect(true);
      const before = stage.gateway.counts.requests;
      const writes = await Promise.all(Array.from({ length: 50 }, (_, n) => redis.set(`k${n}`, `v${n}`)));
      expect(writes.every((answer) => answer === "OK")).toBe(true);
      const reads = await Promise.all(Array.from({ length: 50 }, (_, n) => redis.get<string>(`k${n}`)));
      expect(reads).toEqual(Array.from({ length: 50 }, (_, n) => `v${n}`));
      expect(stage.gateway.counts.requests - before).toBe(2);
    });

    test("requests side by side get their own answers", async () => {
      const redis = connect();
      await Promise.all(
        Array.from({ length: 200 }, async (_, n) => {
          const text = `${n}`.repeat((n % 7) * 1000 + 1);
          await redis.set(`own${n}`, text);
          expect(await redis.get<string>(`own${n}`)).toBe(text);
        }),
      );
    });

    test("an error carries Redis's own words", async () => {
      const redis = connect();
      await redis.set("text", "x");
      await expect(redis.lpush("text", "y")).rejects.toThrow("WRONGTYPE");
    });

    test("a subscription brings what is published, and ends when it is told to", async () => {
      const redis = connect();
      const confirmed = Promise.withResolvers<number>();
      const messages: string[] = [];
      const all = Promise.withResolvers<void>();
      const subscriber = redis.subscribe<string>("news:{a}");
      subscriber.on("subscribe", (count) => confirmed.resolve(count as unknown as number));
      subscriber.on("message", ({ message }) => {
        messages.push(message);
        if (messages.length === 2) all.resolve();
      });
      expect(await confirmed.promise).toBe(1);
      expect(await redis.publish("news:{a}", "first, with a comma")).toBe(1);
      await redis.publish("news:{a}", "zweitens ß");
      await all.promise;
      expect(messages).toEqual(["first, with a comma", "zweitens ß"]);
      await subscriber.unsubscribe();
      while ((await redis.publish("news:{a}", "late")) > 0) await Bun.sleep(5);
    });

    test("a pattern subscription names pattern and channel", async () => {
      const redis = connect();
      const confirmed = Promise.withResolvers<void>();
      const got = Promise.withResolvers<unknown>();
      const subscriber = redis.psubscribe<string>("n*");
      subscriber.on("psubscribe", () => confirmed.resolve());
      subscriber.on("pmessage", (message) => got.resolve(message));
      await confirmed.promise;
      await redis.publish("nine", "text");
      expect(await got.promise).toEqual({ pattern: "n*", channel: "nine", message: "text" });
      await subscriber.unsubscribe();
    });
  });
}

test("a wrong token is refused", async () => {
  const redis = new Redis({ url: stage.gateway.url, token: "wrong", retry: { retries: 0 } });
  await expect(redis.get("a")).rejects.toThrow("WRONGPASS");
});
