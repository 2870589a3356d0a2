/** The gateway's protocol in detail, spoken by hand. */
import { beforeEach, expect, test } from "bun:test";
import { startGateway } from "../../runtimes/bun/gateway/gateway.ts";
import { freePort } from "../support/kept_server.ts";
import { redisForFile } from "../support/redis_fixture.ts";
import { startRedis } from "../support/redis_server.ts";

const stage = redisForFile({ token: "secret", maxBodyBytes: 1_000_000, pingMs: 20 });
beforeEach(async () => {
  await stage.server.command("FLUSHALL");
});

const AUTH = { authorization: "Bearer secret" };

async function ask(path: string, init: RequestInit = {}): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${stage.gateway.url}${path}`, {
    ...init,
    headers: { ...AUTH, ...init.headers },
  });
  return { status: response.status, body: await response.json() };
}
const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  ask(path, { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body), headers });

test("paths are commands", async () => {
  expect(await ask("/set/foo/bar%2Fbaz")).toEqual({ status: 200, body: { result: "OK" } });
  expect(await ask("/get/foo")).toEqual({ status: 200, body: { result: "bar/baz" } });
  expect(await ask("/set/foo/x?EX=100", { method: "PUT" })).toEqual({ status: 200, body: { result: "OK" } });
  expect(await ask("/ttl/foo")).toEqual({ status: 200, body: { result: 100 } });
  expect(await ask("/set/foo?EX=50&XX", { method: "POST", body: "the body" })).toEqual({
    status: 200,
    body: { result: "OK" },
  });
  expect(await ask("/get/foo")).toEqual({ status: 200, body: { result: "the body" } });
  expect(await ask("/get/%ff")).toMatchObject({ status: 400 });
});

test("bytes of a body arrive exactly; in base64 they come back exactly, in plain text as far as they are text", async () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, n) => n);
  await ask("/set/bytes", { method: "POST", body: bytes });
  const exact = await post("/", ["GET", "bytes"], { "upstash-encoding": "base64" });
  expect(Buffer.from((exact.body as { result: string }).result, "base64")).toEqual(Buffer.from(bytes));
  const plain = await post("/", ["GET", "bytes"]);
  expect((plain.body as { result: string }).result).toBe(new TextDecoder().decode(bytes));
});

test("base64 leaves only a command's own OK as it is", async () => {
  const base64 = { "upstash-encoding": "base64" };
  expect((await post("/", ["SET", "k", "OK"], base64)).body).toEqual({ result: "OK" });
  expect((await post("/", ["GET", "k"], base64)).body).toEqual({ result: "T0s=" });
  expect((await post("/", ["PING"], base64)).body).toEqual({ result: "UE9ORw==" });
  const script = ["EVAL", "return {{'a', 1}, redis.status_reply('OK')}", "0"];
  expect((await post("/", script, base64)).body).toEqual({ result: [["YQ==", 1], "T0s="] });
  const commands = [
    ["SET", "k", "x"],
    ["GET", "k"],
  ];
  expect((await post("/multi-exec", commands, base64)).body).toEqual([{ result: "OK" }, { result: "eA==" }]);
  expect((await post("/pipeline", commands, base64)).body).toEqual([{ result: "OK" }, { result: "eA==" }]);
});

test("numbers keep all their digits, both ways", async () => {
  await post("/", '["SET","n",9223372036854775807]');
  expect((await post("/", ["GET", "n"])).body).toEqual({ result: "9223372036854775807" });
  const raw = await fetch(stage.gateway.url, { method: "POST", headers: AUTH, body: '["DECRBY","n",0]' });
  expect(await raw.text()).toBe('{"result":9223372036854775807}');
  await post("/pipeline", '[["SET","f",1.50],["SET","t",true]]');
  expect((await post("/", ["MGET", "f", "t"])).body).toEqual({ result: ["1.50", "true"] });
  expect((await post("/", ["EVAL", "return {-5, 0, -9007199254740993}", 0])).status).toBe(200);
});

test("malformed requests answer 400 and quote nothing", async () => {
  for (const body of ["", "{", "[]", "{}", '"GET"', "[null]", '[["GET"]]', '["GET",{"private":1}]']) {
    const answer = await post("/", body);
    expect(answer.status).toBe(400);
    expect(JSON.stringify(answer.body)).not.toContain("private");
  }
  for (const body of ["[]", "{}", '["GET","k"]', "[[]]"]) {
    expect((await post("/pipeline", body)).status).toBe(400);
    expect((await post("/multi-exec", body)).status).toBe(400);
  }
});

test("commands that would block or change the shared connection are refused", async () => {
  const refused: unknown[][] = [
    ["BLPOP", "k", 0],
    ["blmove", "a", "b", "LEFT", "LEFT", 0],
    ["SUBSCRIBE", "c"],
    ["MONITOR"],
    ["MULTI"],
    ["SELECT", 1],
    ["AUTH", "x"],
    ["CLIENT", "REPLY", "OFF"],
    ["SHUTDOWN"],
    ["XREAD", "BLOCK", 0, "STREAMS", "s", "$"],
    ["XREADGROUP", "GROUP", "g", "c", "COUNT", 1, "BLOCK", 0, "STREAMS", "s", ">"],
  ];
  for (const command of refused) {
    const answer = await post("/", command);
    expect(answer.status).toBe(400);
    expect((answer.body as { error: string }).error).toStartWith("ERR Command is not available");
  }
  expect((await post("/", ["XREAD", "STREAMS", "BLOCK", "0"])).status).toBe(200);
  expect((await ask("/blpop/k/0")).status).toBe(400);
  expect(
    (
      await post("/pipeline", [
        ["SET", "a", 1],
        ["BLPOP", "k", 0],
        ["GET", "a"],
      ])
    ).body,
  ).toEqual([{ result: "OK" }, { error: "ERR Command is not available: 'BLPOP'" }, { result: "1" }]);
  expect((await post("/multi-exec", [["SET", "a", 2], ["MONITOR"]])).status).toBe(400);
  expect((await post("/", ["GET", "a"])).body).toEqual({ result: "1" });
});

test("a token is needed, in the header or in the query", async () => {
  const without = await fetch(stage.gateway.url, { method: "POST", body: '["PING"]' });
  expect(without.status).toBe(401);
  expect(await without.json()).toEqual({ error: "WRONGPASS invalid or missing auth token" });
  for (const authorization of ["Bearer wrong", "Bearer secret1", "secret", "Basic secret"]) {
    expect(
      (await fetch(stage.gateway.url, { method: "POST", headers: { authorization }, body: '["PING"]' }))
        .status,
    ).toBe(401);
  }
  expect(await (await fetch(`${stage.gateway.url}/ping?_token=secret`)).json()).toEqual({ result: "PONG" });
  expect((await fetch(`${stage.gateway.url}/ping?_token=no`)).status).toBe(401);
});

test("methods and sizes have limits", async () => {
  expect((await ask("/ping", { method: "DELETE" })).status).toBe(405);
  expect((await post("/", ["PING"], { "upstash-response-format": "resp2" })).status).toBe(400);
  const large = JSON.stringify(["SET", "k", "x".repeat(1_000_001)]);
  const answer = await post("/", large);
  expect(answer.status).toBe(413);
  expect(answer.body).toHaveProperty("error");
  expect((await post("/", ["SET", "k", "x".repeat(900_000)])).status).toBe(200);
  // So has what does not say how long it is.
  for (const [path, text] of [
    ["/", large],
    ["/pipeline", `[${large}]`],
    ["/multi-exec", `[${large}]`],
    ["/set/k", "x".repeat(1_000_001)],
  ] as const) {
    const body = new ReadableStream<Uint8Array>({
      start(stream) {
        stream.enqueue(new TextEncoder().encode(text));
        stream.close();
      },
    });
    expect([path, (await ask(path, { method: "POST", body })).status]).toEqual([path, 413]);
  }
});

test("requests and commands are counted", async () => {
  stage.gateway.resetCounts();
  await post("/", ["PING"]);
  await post("/pipeline", [["PING"], ["PING"]]);
  await post("/multi-exec", [["PING"]]);
  await post("/", ["MONITOR"]);
  expect(stage.gateway.counts).toEqual({ requests: 4, commands: 6, subscriptions: 0 });
});

test("a subscription is pinged, and a message with newlines stays one event", async () => {
  const response = await fetch(`${stage.gateway.url}/subscribe/a%2Fb`, {
    method: "POST",
    headers: { ...AUTH, accept: "text/event-stream" },
  });
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  const until = async (mark: string) => {
    while (!text.includes(mark)) {
      const { value, done } = await reader.read();
      if (done) throw new Error("the stream ended");
      text += value;
    }
  };
  await until("data: subscribe,a/b,1\n\n");
  await until(": ping\n\n");
  await stage.server.command("PUBLISH", "a/b", "one\ntwo");
  await until("data: message,a/b,one\ndata: two\n\n");
  await reader.cancel();
  while ((await stage.server.command("PUBSUB", "NUMSUB", "a/b").then((r) => (r as unknown[])[1])) !== 0)
    await Bun.sleep(5);
});

test("a subscription that Redis refuses, or never confirms, is no subscription", async () => {
  const redis = await startRedis();
  await redis.command("ACL", "SETUSER", "deaf", "on", ">pw", "~*", "&*", "+@all", "-subscribe");
  const other = startGateway({
    redis: redis.url.replace("//", "//deaf:pw@"),
    token: "t",
    redisTimeoutMs: 300,
  });
  const subscribed = () =>
    fetch(`${other.url}/subscribe/news`, { method: "POST", headers: { authorization: "Bearer t" } });
  try {
    const refused = await subscribed();
    expect(refused.status).toBe(400);
    expect(((await refused.json()) as { error: string }).error).toStartWith("NOPERM");
    redis.freeze();
    expect((await subscribed()).status).toBe(503);
    redis.thaw();
  } finally {
    await other.stop();
    await redis.stop();
  }
});

test("the loss of Redis answers 503 at once, ends subscriptions, and passes", async () => {
  const own = await startRedis({ config: { "busy-reply-threshold": "10" } });
  const before = startGateway({ redis: own.url, token: "secret" });
  const call = (command: unknown[]) =>
    fetch(before.url, { method: "POST", headers: AUTH, body: JSON.stringify(command) });
  try {
    expect((await call(["PING"])).status).toBe(200);
    const stream = await fetch(`${before.url}/subscribe/c`, { method: "POST", headers: AUTH });
    const reader = stream.body!.getReader();
    await reader.read();
    const underWay = call(["EVAL", "while true do end", 0]);
    while ((await own.command("PING").catch((error: Error) => error.message.slice(0, 4))) !== "BUSY") {
      await Bun.sleep(5);
    }
    await own.kill();
    expect((await underWay).status).toBe(503);
    const lost = await call(["PING"]);
    expect(lost.status).toBe(503);
    expect(((await lost.json()) as { error: string }).error).toStartWith("ERR Cannot reach Redis");
    while (!(await reader.read()).done);
    await own.restart();
    expect((await call(["PING"])).status).toBe(200);
  } finally {
    await before.stop();
    await own.stop();
  }
});

test("a Redis that stands still answers 503 within the deadline", async () => {
  const own = await startRedis();
  const short = startGateway({ redis: own.url, token: "secret", redisTimeoutMs: 200 });
  const ping = () => fetch(short.url, { method: "POST", headers: AUTH, body: '["PING"]' });
  try {
    expect((await ping()).status).toBe(200);
    own.freeze();
    const [first, second] = await Promise.all([ping(), ping()]);
    expect([first.status, second.status]).toEqual([503, 503]);
    own.thaw();
    expect((await ping()).status).toBe(200);
  } finally {
    own.thaw();
    await short.stop();
    await own.stop();
  }
});

test("a Redis with a password and another database is entered; a wrong password is told without naming it", async () => {
  const own = await startRedis();
  try {
    await own.command("SET", "where", "database 0");
    await own.command("CONFIG", "SET", "requirepass", "hunter2");
    const address = own.url.replace("redis://", "redis://:hunter2@");
    const right = startGateway({ redis: `${address}/3`, token: "secret" });
    const wrong = startGateway({ redis: own.url.replace("redis://", "redis://:nonsense@"), token: "secret" });
    const get = (url: string) => fetch(url, { method: "POST", headers: AUTH, body: '["GET","where"]' });
    expect(await (await get(right.url)).json()).toEqual({ result: null });
    const refused = await get(wrong.url);
    expect(refused.status).toBe(503);
    const text = await refused.text();
    expect(text).toContain("refuses the connection");
    expect(text).not.toContain("nonsense");
    const subscription = await fetch(`${wrong.url}/subscribe/c`, { method: "POST", headers: AUTH });
    expect(subscription.status).toBe(503);
    await subscription.body?.cancel();
    await right.stop();
    await wrong.stop();
  } finally {
    await own.stop();
  }
});

test("a user without a password is entered as that user", async () => {
  const redis = await startRedis();
  await redis.command("ACL", "SETUSER", "open", "on", "nopass", "~*", "+@all");
  const whoami = async (user: string) => {
    const other = startGateway({ redis: redis.url.replace("//", `//${user}@`), token: "t" });
    const answer = await fetch(other.url, {
      method: "POST",
      headers: { authorization: "Bearer t" },
      body: '["ACL","WHOAMI"]',
    });
    const { result, error } = (await answer.json()) as { result?: string; error?: string };
    await other.stop();
    return result ?? error;
  };
  expect(await whoami("open")).toBe("open");
  expect(await whoami("nobody")).toContain("WRONGPASS");
  await redis.stop();
});

test("what is no Redis is told apart from one", async () => {
  const port = await freePort();
  const web = Bun.serve({ port, hostname: "127.0.0.1", fetch: () => new Response("hello") });
  const odd = startGateway({ redis: `redis://127.0.0.1:${port}`, token: "secret" });
  const answer = await fetch(odd.url, { method: "POST", headers: AUTH, body: '["PING"]' });
  expect(answer.status).toBe(503);
  await odd.stop();
  await web.stop(true);
});
