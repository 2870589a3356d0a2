/** The commands on a real Redis over HTTP: brokers that are gone, refused or flushed, and tokens that must never show. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { join, resolve } from "node:path";
import { startGateway } from "../../runtimes/bun/gateway/gateway.ts";
import { type RedisOverHttp, startRedisOverHttp } from "../support/gateway.ts";
import { freePort } from "../support/kept_server.ts";
import { holdingServer } from "./holding_server.ts";
import { type Ended, eddy, startEddy } from "./process.ts";

// Each test starts processes.
setDefaultTimeout(30_000);

const HELD = join(resolve(import.meta.dir, "../.."), "tests/cli/held_worker.ts");
const TOKEN = "hush-token-77d1";

let redis: RedisOverHttp;
beforeAll(async () => {
  redis = await startRedisOverHttp({ persist: true }, { token: TOKEN });
});
afterAll(() => redis.stop());

/** The variables that lead to the gateway. */
function reach(url = redis.gateway.url, token = TOKEN): Record<string, string> {
  return { EDDY_BROKER: url, EDDY_BROKER_TOKEN: token };
}

function expectNoSecret({ out, err }: Pick<Ended, "out" | "err">): void {
  expect(out + err).not.toContain("hush");
}

test("enqueue, stats, drain and dead letters, the job's text nowhere in the logs", async () => {
  await using server = holdingServer();
  const env = { ...reach(), EDDY_TEST_URL: server.url };
  server.answer();
  const input = '{"n":1}\n{"n":2}\n{"n":3}\n{"n":4,"x":"hush"}';
  expect((await eddy(["enqueue", "tasks"], { env, input })).out).toBe("tasks: 4 accepted, 0 rejected\n");
  expect(JSON.parse((await eddy(["stats", "tasks", "--json"], { env })).out)).toMatchObject([{ ready: 4 }]);
  const drained = await eddy(["drain", HELD, "--verbose"], { env });
  expect(drained.code).toBe(0);
  expect(drained.out).toMatch(
    /^Drained 4 deliveries \(4 acked\) in \d+ ms with [1-9]\d* requests; .+; left: 0\n$/,
  );
  expectNoSecret(drained);
});

test("a budget of requests that no job fits into is refused as a flag is", async () => {
  const { code, out, err } = await eddy(["drain", HELD, "--max-requests", "3"], { env: reach() });
  expect([code, out]).toEqual([2, ""]);
  expect(err).toMatch(
    /^Cannot drain: --max-requests is 3; give \d or more, the least .+\nSee `npx eddy drain --help`\.\n$/,
  );
});

test("Upstash's own variables are honoured, and their token goes to no other URL", async () => {
  const env = { UPSTASH_REDIS_REST_URL: redis.gateway.url, UPSTASH_REDIS_REST_TOKEN: TOKEN };
  expect((await eddy(["stats", "tasks"], { env })).code).toBe(0);
  expect((await eddy(["stats", "tasks", "--broker", redis.gateway.url], { env })).code).toBe(0);
  const other = await eddy(["stats", "tasks", "--broker", "http://127.0.0.1:1"], { env });
  expect([other.code, other.err]).toEqual([
    1,
    "Cannot use the broker: its name is a URL without a token; set EDDY_BROKER_TOKEN, or write ws:// or wss:// if NATS is meant\n",
  ]);
  // EDDY_BROKER comes first.
  const first = await eddy(["stats", "tasks"], { env: { ...env, EDDY_BROKER: "sqlite:nowhere.sqlite" } });
  expect(first.err).toContain("sqlite:nowhere.sqlite");
});

const WITHOUT_BROKER: [string, string[]][] = [
  ["worker", [HELD]],
  ["drain", [HELD]],
  ["enqueue", ["tasks", '{"n":1,"x":"hush"}']],
  ["stats", ["tasks"]],
  ["dead", ["tasks"]],
];
test.each(WITHOUT_BROKER)(
  "%s ends with 1 and a sentence when the broker cannot be reached or the token is wrong",
  async (command, rest) => {
    const args = [command, ...rest];
    const gone = await eddy(args, { env: reach(`http://127.0.0.1:${await freePort()}`) });
    expect([gone.code, gone.err.trimEnd().split("\n").length]).toEqual([1, 1]);
    expect(gone.err).toMatch(/^(Cannot|The) /);
    expectNoSecret(gone);
    const wrong = await eddy(args, { env: reach(redis.gateway.url, "hush-wrong") });
    expect(wrong.code).toBe(1);
    expect(wrong.err).toMatch(/^(Cannot|The) /);
    expectNoSecret(wrong);
  },
);

test("a broker that is lost while a worker runs is told once, and so is its return", async () => {
  const port = await freePort();
  const options = { redis: redis.server.url, token: TOKEN, port };
  let gateway = startGateway(options);
  await using server = holdingServer();
  server.answer();
  const env = { ...reach(gateway.url), EDDY_TEST_URL: server.url };
  await using worker = startEddy(["worker", HELD], { env });
  await worker.outputs(/Ready/);
  await gateway.stop();
  await worker.outputs(/WARN {2}The broker failed; trying again queue=tasks verb=\w+ error=.+ retryInMs=\d+/);
  gateway = startGateway(options);
  await worker.outputs(/INFO {2}The broker answers again queue=tasks/);
  await eddy(["enqueue", "tasks", '{"n":9}'], { env });
  await server.came(1);
  worker.signal("SIGTERM");
  const ended = await worker.exited();
  expect([ended.code, ended.err]).toEqual([0, ""]);
  expect(ended.out.match(/The broker failed/g)).toHaveLength(1);
  expectNoSecret(ended);
  await gateway.stop();
});

test("with --wait a worker starts once the broker can be reached", async () => {
  const port = await freePort();
  await using server = holdingServer();
  const env = { ...reach(`http://127.0.0.1:${port}`), EDDY_TEST_URL: server.url };
  const http = await freePort();
  await using worker = startEddy(["worker", HELD, "--wait", "--http", String(http)], { env });
  await worker.outputs(/WARN {2}The broker cannot be reached; trying again/);
  const health = await fetch(`http://127.0.0.1:${http}/health`);
  expect([health.status, await health.json()]).toEqual([503, expect.objectContaining({ code: "starting" })]);
  const gateway = startGateway({ redis: redis.server.url, token: TOKEN, port });
  await worker.outputs(/Serving HTTP/);
  expect((await fetch(`http://127.0.0.1:${http}/health`)).status).toBe(200);
  worker.signal("SIGTERM");
  expect((await worker.exited()).code).toBe(0);
  await gateway.stop();

  await using waiting = startEddy(["worker", HELD, "--wait"], { env });
  await waiting.outputs(/trying again/);
  waiting.signal("SIGTERM");
  expect((await waiting.exited()).code).toBe(0);
});

test("a Redis that may evict keys is refused with what to change", async () => {
  const evicting = await startRedisOverHttp(
    { config: { "maxmemory-policy": "allkeys-lru" } },
    { token: TOKEN },
  );
  try {
    for (const command of [
      ["worker", HELD],
      ["drain", HELD],
    ]) {
      const ended = await eddy(command, { env: reach(evicting.gateway.url) });
      expect(ended.code).toBe(1);
      expect(ended.err).toContain("maxmemory-policy");
      expectNoSecret(ended);
    }
  } finally {
    await evicting.stop();
  }
});

test("keys that are flushed under a running worker end it with 1 and a sentence", async () => {
  const own = await startRedisOverHttp({ persist: true }, { token: TOKEN });
  try {
    await using server = holdingServer();
    const env = { ...reach(own.gateway.url), EDDY_TEST_URL: server.url };
    await using worker = startEddy(["worker", HELD, "--http", "0"], { env });
    const [url] = await worker.outputs(/http:\/\/127\.0\.0\.1:\d+$/m);
    await fetch(`${url}/v1/queues/tasks/jobs`, { method: "POST", body: '{"n":1,"x":"hush"}' });
    await server.came(1);
    await own.server.command("FLUSHALL");
    server.answer();
    const ended = await worker.exited();
    expect(ended.code).toBe(1);
    expect(ended.err).toBe("Stopped: the broker is refused, as the log says\n");
    expect(ended.out).toMatch(/ERROR The broker is refused queue=tasks error="(Cannot|The) .+"\n/);
    expectNoSecret(ended);
  } finally {
    await own.stop();
  }
});

test("a Redis without an append-only file is told of once, by commands that trust it with jobs, in their own way", async () => {
  const own = await startRedisOverHttp({}, { token: TOKEN });
  try {
    await using server = holdingServer();
    server.answer();
    const env = { ...reach(own.gateway.url), EDDY_TEST_URL: server.url };
    const text = `Redis at ${own.gateway.url} keeps no append-only file, `;
    const enqueued = await eddy(["enqueue", "tasks", '{"n":1}'], { env });
    expect([enqueued.code, enqueued.err]).toEqual([0, expect.stringMatching(/^Redis at .+\n$/)]);
    expect(enqueued.err).toStartWith(text);
    for (const looks of [["stats"], ["peek"], ["dead"], ["redrive"], ["pause"], ["resume"]]) {
      const { code, err } = await eddy([...looks, "tasks"], { env });
      expect([code, err]).toEqual([0, ""]);
    }
    const drained = await eddy(["drain", HELD, "--json"], { env });
    expect(drained.code).toBe(0);
    const warnings = drained.err.split("\n").filter((line) => line.includes("append-only"));
    expect(warnings.map((line) => JSON.parse(line))).toEqual([
      { time: expect.any(String), level: "warn", message: expect.stringContaining(text) },
    ]);
    await using worker = startEddy(["worker", HELD], { env });
    await worker.outputs(/Ready/);
    worker.signal("SIGTERM");
    const { code, out, err } = await worker.exited();
    expect([code, err]).toEqual([0, ""]);
    expect(out.match(/^\S+Z WARN {2}Redis at \S+ keeps no append-only file, /gm)).toHaveLength(1);
    expect(out.match(/append-only/g)).toHaveLength(1);
  } finally {
    await own.stop();
  }
});

test("the demo passes", async () => {
  const ended = await eddy(["demo"], { env: reach() });
  expect([ended.code, ended.err]).toEqual([0, ""]);
  expect(ended.out).toStartWith(`broker: ${redis.gateway.url}\n`);
  expect(ended.out).toMatch(/PASS: 5 checks\n$/);
  expectNoSecret(ended);
}, 40_000);
