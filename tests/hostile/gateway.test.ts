/** Hostile requests to the gateway, in front of a real Redis: a bad request or an answer, and the shared connection lives on. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { RedisBroker } from "../../adapters/redis/mod.ts";
import { openApp, post } from "../http/fixture.ts";
import { rawHttp } from "../support/raw_http.ts";
import { redisForFile } from "../support/redis_fixture.ts";
import { BODY, body, expectNoCanary, json, nested, TOKEN, text, tried } from "./hostile.ts";

const stage = redisForFile({ token: TOKEN, maxBodyBytes: 1_000_000 });

const AUTH = { authorization: `Bearer ${TOKEN}` };

/** Commands that read, write, fail, block, or would change the connection; none that stops the server or locks it up. */
const name = fc.oneof(
  fc.constantFrom(
    "GET",
    "SET",
    "MGET",
    "LPUSH",
    "LRANGE",
    "HSET",
    "HGETALL",
    "XADD",
    "XRANGE",
    "XREAD",
    "INCR",
  ),
  fc.constantFrom(
    "EVAL",
    "EVALSHA",
    "SCRIPT",
    "ECHO",
    "PING",
    "TYPE",
    "OBJECT",
    "SCAN",
    "FLUSHALL",
    "COMMAND",
  ),
  fc.constantFrom(
    "BLPOP",
    "WAIT",
    "SUBSCRIBE",
    "MONITOR",
    "MULTI",
    "EXEC",
    "AUTH",
    "SELECT",
    "HELLO",
    "QUIT",
  ),
  fc.constantFrom(
    "CLIENT",
    "RESET",
    "WATCH",
    "SYNC",
    "xreadgroup",
    "Script",
    "cLiEnT",
    "get\r\n",
    "",
    "GET ",
  ),
  text,
);
const argument = fc.oneof(
  text,
  fc.constantFrom(
    "k",
    "k2",
    "0",
    "1",
    "BLOCK",
    "STREAMS",
    "$",
    "REPLY",
    "OFF",
    "DEBUG",
    "YES",
    "return 1",
    BODY,
  ),
  fc.constantFrom(
    "return redis.error_reply('x\\r\\n+OK')",
    "return {1,{2,{3,false}},'a\\r\\nb'}",
    "error('x')",
  ),
  fc.oneof(fc.integer(), fc.double(), fc.boolean()),
);
/** Commands that Redis takes, whatever the argument. */
const fitting = fc
  .tuple(
    fc.constantFrom("SET k", "GET", "LPUSH l", "ECHO", "EVAL return{ARGV[1],{1,false}} 0", "DEL"),
    argument,
  )
  .map(([start, last]) => [...start.split(" "), last]);
const anyCommand = fc
  .tuple(name, fc.array(argument, { maxLength: 5 }))
  .map(([first, rest]) => [first, ...rest]);
const command = fc.oneof(fitting, anyCommand);
const odd = fc.oneof(
  fc.constant(null),
  fc.constant({}),
  fc.constant([]),
  fc.constant([[[["GET"]]]]),
  fc.array(argument, { maxLength: 3 }),
  command,
);
const payload = fc.oneof(
  { weight: 3, arbitrary: command.map((one) => JSON.stringify(one)) },
  { weight: 2, arbitrary: fc.array(command, { maxLength: 5 }).map((all) => JSON.stringify(all)) },
  fc.array(odd, { maxLength: 5 }).map((all) => JSON.stringify(all)),
  fc.constantFrom(5, 5_000, 100_000).map((depth) => `[1e400,${nested(depth)}]`),
  json,
  body,
);
const path = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom("/", "/pipeline", "/multi-exec") },
  fc
    .array(fc.oneof(argument.map(String), fc.constantFrom("%", "%ff", "..", "")), { maxLength: 5 })
    .map((parts) => `/${parts.map((part) => encodeURIComponent(part.toWellFormed())).join("/")}`)
    .filter((some) => !/^\/p?subscribe(\/|$)/.test(some)),
  fc.constantFrom(
    "/get/%ff",
    "/%",
    "//",
    "/pipeline/",
    "/script?SYNC",
    "/client?ON",
    "/set/k?EX&&=",
    "/get?_token",
  ),
);

async function expectAlive(): Promise<void> {
  const pong = await fetch(stage.gateway.url, { method: "POST", headers: AUTH, body: '["PING"]' });
  expect(await pong.json()).toEqual({ result: "PONG" });
}

test("any command, pipeline or rubbish is answered, and never by a fault", async () => {
  const statuses = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(
      path,
      payload,
      fc.constantFrom("POST", "POST", "POST", "PUT", "GET", "HEAD", "DELETE"),
      fc.constantFrom("", "base64"),
      async (where, sent, method, encoding) => {
        const response = await fetch(`${stage.gateway.url}${where}`, {
          method,
          headers: { ...AUTH, ...(encoding === "" ? {} : { "upstash-encoding": encoding }) },
          ...(method === "GET" || method === "HEAD" ? {} : { body: sent }),
        });
        const answer = await response.text();
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
        expect([200, 400, 405, 413]).toContain(response.status);
        expect(answer).not.toContain(TOKEN);
        if (method === "HEAD") return;
        const told: unknown = JSON.parse(answer);
        const parts = Array.isArray(told) ? told : [told];
        if (response.status !== 200) expect(parts[0]).toEqual({ error: expect.any(String) });
        for (const part of parts) expect(["result", "error"]).toContain(Object.keys(part as object).join());
      },
    ),
    tried(1_500),
  );
  await expectAlive();
  expect(statuses.get(200)).toBeGreaterThan(100);
  expect(statuses.get(400)).toBeGreaterThan(100);
}, 60_000);

test("a request's answers are its own, whatever is asked beside it", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 8 }), fc.nat(), async (noise, mark) => {
      const noisy = noise.map((one) =>
        fetch(stage.gateway.url, { method: "POST", headers: AUTH, body: JSON.stringify(one) }).then((r) =>
          r.text(),
        ),
      );
      const own = fetch(`${stage.gateway.url}/pipeline`, {
        method: "POST",
        headers: AUTH,
        body: JSON.stringify([
          ["ECHO", `a${mark}`],
          ["ECHO", `b${mark}`],
        ]),
      });
      expect(await (await own).json()).toEqual([{ result: `a${mark}` }, { result: `b${mark}` }]);
      await Promise.all(noisy);
    }),
    tried(200),
  );
}, 60_000);

test("what the gateway itself refuses holds nothing of what was sent", async () => {
  for (const sent of [
    BODY,
    `["${BODY}`,
    `[{"${BODY}":1}]`,
    `[["GET",{"a":"${BODY}"}]]`,
    `[1e400,{"a":"${BODY}"}]`,
  ]) {
    for (const where of ["/", "/pipeline", "/multi-exec"]) {
      const answer = await fetch(`${stage.gateway.url}${where}`, {
        method: "POST",
        headers: AUTH,
        body: sent,
      });
      expect(answer.status).toBe(400);
      expectNoCanary(await answer.text());
    }
  }
  const wrong = await fetch(`${stage.gateway.url}/get/${BODY}`, {
    headers: { authorization: `Bearer ${TOKEN}x` },
  });
  expect(wrong.status).toBe(401);
  expectNoCanary(await wrong.text());
  const large = await fetch(stage.gateway.url, { method: "POST", headers: AUTH, body: BODY.repeat(100_000) });
  expect(large.status).toBe(413);
  expectNoCanary(await large.text());
});

test("any bytes on its socket are refused or cut off", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 200 }), async (bytes) => {
      const answer = await rawHttp(stage.gateway.port, new Uint8Array(bytes), { end: true });
      if (answer !== "") expect(answer).toMatch(/^HTTP\/1\.1 (4\d\d|505) /);
    }),
    tried(100),
  );
  await expectAlive();
}, 60_000);

test("a broker behind it tells neither token nor body, whatever goes wrong", async () => {
  const told: string[] = [];
  const log = (...line: unknown[]) => told.push(JSON.stringify(line));
  const sendTo = async (url: string, token: string) => {
    const app = openApp({ broker: new RedisBroker({ url, token }), log });
    for (const path of ["/v1/queues/notes/jobs", "/v1/queues/notes/pause", "/v1/drain"]) {
      const answer = await post(app, path, path.endsWith("jobs") ? BODY : "");
      told.push(answer.text);
      expect([201, 200, 503]).toContain(answer.status);
    }
  };
  await sendTo(stage.gateway.url, `${TOKEN}x`);
  // A Redis that takes nothing more, and one whose keys are of another kind.
  await stage.server.command("CONFIG", "SET", "maxmemory", "1");
  await sendTo(stage.gateway.url, TOKEN);
  await stage.server.command("CONFIG", "SET", "maxmemory", "0");
  await stage.server.command("FLUSHALL");
  await stage.server.command("SET", "eddy:{notes}:queue", BODY);
  await sendTo(stage.gateway.url, TOKEN);
  await stage.server.command("FLUSHALL");
  const elsewhere = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (r) => new Response(await r.text()),
  });
  await sendTo(String(elsewhere.url).replace(/\/$/, ""), TOKEN);
  await elsewhere.stop(true);
  await sendTo(String(elsewhere.url).replace(/\/$/, ""), TOKEN);
  expect(told.filter((line) => line.includes("Cannot")).length).toBeGreaterThan(8);
  expectNoCanary(told.join("\n"));
}, 60_000);
