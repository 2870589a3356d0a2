/** Requests: how many there are, what happens when one fails or its reply is lost, and what is told of it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { RedisBroker } from "../../adapters/redis/mod.ts";
import type { BrokerQueue, ExchangeRequest } from "../../src/broker.ts";
import { BrokerError, BrokerRefusedError } from "../../src/errors.ts";
import {
  ACK,
  bytes,
  drain,
  ids,
  idsOf,
  job,
  leaseId,
  put,
  settle,
  take,
} from "../support/conformance_steps.ts";
import { answering, HttpProxy, passing } from "../support/http_proxy.ts";
import { freePort } from "../support/kept_server.ts";
import { LONG, redisForFile } from "../support/redis_fixture.ts";

const SECRET = "payload-that-must-not-show";
const TOKEN = "token-that-must-not-show";

const redis = redisForFile({ token: TOKEN });
let front: HttpProxy;
beforeAll(async () => {
  front = await HttpProxy.start(redis.gateway.url);
});
afterAll(() => front.stop());

function fresh(
  more: {
    url?: string;
    token?: string;
    timeoutMs?: number;
    maxRequestBytes?: number;
    maxReplyBytes?: number;
  } = {},
) {
  front.script = passing;
  const { url = front.url, token = TOKEN, timeoutMs = 10_000, ...options } = more;
  const broker = new RedisBroker({ url, token, ...options });
  const queue = broker.queue(redis.name(), { ...LONG, requestTimeoutMs: timeoutMs });
  return { broker, queue };
}

async function failureOf(promise: Promise<unknown>): Promise<BrokerError> {
  const error = await promise.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(BrokerError);
  const all = Bun.inspect(error, { depth: 10 }) + JSON.stringify(error) + String((error as Error).stack);
  expect(all).not.toContain(SECRET);
  expect(all).not.toContain(TOKEN);
  return error as BrokerError;
}

const secretJob = () => job("a", { body: SECRET, headers: { kind: SECRET } });
const enqueueSecret = (queue: BrokerQueue) => queue.enqueue(leaseId(), [secretJob()]);

test("each verb is one request; a script the server forgot costs one more", async () => {
  const { broker, queue } = fresh();
  await queue.open();
  for (const forgotten of [true, false, true, false]) {
    if (forgotten) await redis.server.command("SCRIPT", "FLUSH");
    const [atBroker, atServer] = [broker.requests, front.requests];
    expect(await take(queue)).toEqual([]);
    const cost = forgotten ? 2 : 1;
    expect([broker.requests - atBroker, front.requests - atServer]).toEqual([cost, cost]);
  }
});

test("every verb goes on after SCRIPT FLUSH", async () => {
  const { queue } = fresh();
  const flush = () => redis.server.command("SCRIPT", "FLUSH");
  await flush();
  await queue.open();
  await flush();
  await put(queue, "a", "b", "c");
  await flush();
  const held = await take(queue, 2);
  await flush();
  expect(await settle(queue, held.slice(0, 1), { kind: "dead", error: "no" })).toEqual(["done"]);
  for (const step of [
    () => queue.renew([held[0]!.leaseId]),
    () => queue.sizes!(),
    () => queue.peek!("ready", 5),
    () => queue.redrive!({ limit: 5 }),
    () => queue.abandon!([held[0]!.leaseId]),
    () => queue.pause!(),
    () => queue.resume!(),
    () => queue.clear!(["dead"]),
  ]) {
    await flush();
    await step();
  }
  expect(ids(await drain(queue)).sort()).toEqual(["a", "b", "c"]);
});

test("an exchange whose reply is lost is sent again and counts once", async () => {
  const { queue } = fresh({ timeoutMs: 300 });
  await queue.open();
  await put(queue, "a", "b", "c", "d");
  const held = await take(queue, 2);
  const request: ExchangeRequest = {
    settle: held.map((delivery) => ({ delivery, verdict: ACK })),
    renew: [],
    claim: { leaseId: leaseId(), max: 2, waitMs: 0 },
  };
  const losses: ((forward: () => Promise<Response>) => Promise<Response>)[] = [
    // It got through, and what came back was cut off, garbled, or nothing at all.
    async (forward) =>
      new Response((await forward()).status === 200 ? "<html>bad gateway" : "", { status: 502 }),
    async (forward) => new Response((await (await forward()).text()).slice(0, 20)),
    async (forward) => {
      await forward();
      return await new Promise<Response>(() => {});
    },
  ];
  for (const lose of losses) {
    front.script = answering(lose);
    await failureOf(queue.exchange!(request));
  }
  front.script = passing;
  const reply = await queue.exchange!(request);
  expect([...reply.settled]).toEqual(["done", "done"]);
  expect(ids(reply.claimed?.deliveries ?? [])).toEqual(["c", "d"]);
  expect(await queue.sizes!()).toMatchObject({ ready: 0, held: 2 });
});

test("an enqueue whose reply is lost is sent again and adds nothing", async () => {
  const { queue } = fresh();
  await queue.open();
  front.script = answering(async (forward) => {
    await forward();
    return new Response("lost", { status: 500 });
  });
  const request = leaseId();
  await failureOf(queue.enqueue(request, [secretJob()]));
  front.script = passing;
  expect(await queue.enqueue(request, [secretJob()])).toEqual([{ id: "a", duplicate: false }]);
  expect(ids(await drain(queue))).toEqual(["a"]);
});

test("an enqueue too large for one request goes in parts, all or none, and may be sent again", async () => {
  const { broker, queue } = fresh({ maxRequestBytes: 200_000 });
  await queue.open();
  const jobs = Array.from({ length: 30 }, (_, n) =>
    job(`j${n}`, {
      body: n % 2 ? `${n}`.padStart(30_000, "x") : new Uint8Array(20_000).fill(200 + n),
      dedupe: n === 3,
    }),
  );
  const request = leaseId();
  let calls = 0;
  front.script = answering((forward) => (++calls > 5 ? new Response("{}", { status: 500 }) : forward()));
  await failureOf(queue.enqueue(request, jobs));
  front.script = passing;
  expect(await queue.sizes!()).toMatchObject({ ready: 0 });
  const before = broker.requests;
  const results = await queue.enqueue(request, jobs);
  expect(broker.requests - before).toBeGreaterThan(4);
  expect(results.every((one) => !one.duplicate)).toBe(true);
  await queue.enqueue(request, jobs);
  const again = await queue.enqueue(leaseId(), jobs.slice(0, 10));
  expect(again.map((one) => one.duplicate)).toEqual(jobs.slice(0, 10).map((_, n) => n === 3));
  const deliveries = await drain(queue);
  expect(deliveries.slice(0, 30).map((one) => bytes(one.body))).toEqual(jobs.map((one) => bytes(one.body)));
  expect(deliveries.length).toBe(39);
  const names = (await redis.server.command("KEYS", "*part*")) as string[];
  expect(names).toEqual([]);
});

test("a claim brings no more bytes than the way back allows, and says that there are more", async () => {
  const { queue } = fresh({ maxReplyBytes: 100_000 });
  await queue.open();
  const sizes = [30_000, 30_000, 30_000, 30_000, 250_000, 10, 60_000, 60_000];
  await put(
    queue,
    ...sizes.map((size, n) => job(`j${n}`, { body: "x".repeat(size), priority: n === 7 ? "low" : "high" })),
  );
  const batches: string[][] = [];
  for (;;) {
    const { deliveries, nextDueMs } = await queue.claim({ leaseId: leaseId(), max: 16, waitMs: 0 });
    if (deliveries.length === 0) break;
    batches.push(ids(deliveries));
    if (batches.flat().length < sizes.length) expect(nextDueMs).toBe(0);
    expect(deliveries.every((one) => one.attempt === 1 && !one.suspect)).toBe(true);
    expect(await settle(queue, deliveries, ACK)).toEqual(deliveries.map(() => "done"));
  }
  expect(batches).toEqual([["j0", "j1", "j2"], ["j3"], ["j4"], ["j5", "j6"], ["j7"]]);
});

test("a claim takes no more out of the queue than it brings, and a waiting level still gets its turn", async () => {
  const { queue } = fresh({ maxReplyBytes: 1_000_000 });
  await queue.open();
  const body = "x".repeat(300_000);
  await put(
    queue,
    ...idsOf("h", 20).map((id) => job(id, { body, priority: "high" })),
    job("low", { body, priority: "low" }),
  );
  const base = `eddy:{${queue.name}}:`;
  const counts = async () =>
    Promise.all([
      redis.server.command("LLEN", `${base}ready:0`),
      redis.server.command("LLEN", `${base}ready:2`),
      redis.server.command("ZCARD", `${base}returned`),
    ]);
  const seen: string[] = [];
  const left: unknown[] = [];
  for (let claims = 0; claims < 3; claims++) {
    const deliveries = await take(queue, 100);
    expect(deliveries.length).toBe(3);
    seen.push(...ids(deliveries));
    await settle(queue, deliveries, ACK);
    left.push(await counts());
  }
  // One at most is beyond the bound, and waits where returned jobs do; no other was touched.
  expect(left).toEqual([
    [16, 1, 1],
    [13, 1, 1],
    [11, 0, 1],
  ]);
  expect(seen).toEqual([...idsOf("h", 8), "low"]);
});

describe("what is told", () => {
  test("a wrong token: final, and names the option", async () => {
    const { queue } = fresh({ token: "wrong-token" });
    for (const ask of [queue.open(), enqueueSecret(queue)]) {
      const error = await failureOf(ask);
      expect(error).toBeInstanceOf(BrokerRefusedError);
      expect(error.message).toContain("option token");
      expect(error.message).not.toContain("wrong-token");
    }
  });

  test("a token that is refused in other words, or in a page: final all the same", async () => {
    for (const body of [
      '{"error":"invalid token"}',
      '{"message":"who are you?"}',
      "<html>sign in</html>",
      "",
    ]) {
      const { queue } = fresh();
      front.script = answering(() => new Response(body, { status: 401 }));
      const error = await failureOf(enqueueSecret(queue));
      expect([body, error.name]).toEqual([body, "BrokerRefusedError"]);
      expect(error.message).toContain("option token");
    }
  });

  test("an address where nothing listens: passing, at once", async () => {
    const { queue } = fresh({ url: `http://127.0.0.1:${await freePort()}` });
    const error = await failureOf(enqueueSecret(queue));
    expect(error).not.toBeInstanceOf(BrokerRefusedError);
    expect(error.message).toContain("cannot be reached");
    expect([error.broker, error.verb]).toEqual(["redis", "enqueue"]);
  });

  const answers: [string, () => Response, string][] = [
    ["an HTML page", () => new Response("<html>hello</html>"), "not JSON"],
    ["an HTML error", () => new Response("<html>bad</html>", { status: 502 }), "an error (HTTP 502)"],
    ["a page that asks to wait", () => new Response("slowly", { status: 429 }), "an error (HTTP 429)"],
    [
      "a page that is not there",
      () => new Response("<html>bad</html>", { status: 404 }),
      "not JSON (HTTP 404)",
    ],
    ["nothing", () => new Response(""), "not JSON"],
    [
      "429",
      () => Response.json({ error: "ERR max daily request limit exceeded. Limit: 1" }, { status: 429 }),
      "limit exceeded",
    ],
    ["500 without a reason", () => Response.json({}, { status: 500 }), "answered an error (HTTP 500)"],
    [
      "500 that quotes the command",
      () => Response.json({ error: `ERR bad '${SECRET}'` }, { status: 500 }),
      "ERR",
    ],
    ["null", () => Response.json(null), "no script of Eddy's"],
    ["no result", () => Response.json({}), "no script of Eddy's"],
    ["a text", () => Response.json({ result: "hello" }), "no script of Eddy's"],
    ["an empty list", () => Response.json({ result: [] }), "no script of Eddy's"],
    ["a list of something else", () => Response.json({ result: ["ok", 1, 2, 3] }), "no script of Eddy's"],
  ];
  for (const [name, answer, words] of answers) {
    test(`an answer that is ${name}: passing`, async () => {
      const { queue } = fresh();
      await queue.open();
      front.script = answering(answer);
      for (const ask of [enqueueSecret(queue), take(queue)]) {
        const error = await failureOf(ask);
        expect(error).not.toBeInstanceOf(BrokerRefusedError);
        expect(error.message).toContain(words);
      }
    });
  }

  test("no answer: passing, when the request's time is over", async () => {
    const { queue } = fresh({ timeoutMs: 200 });
    await queue.open();
    front.script = () => ({ kind: "halfOpen" });
    const error = await failureOf(enqueueSecret(queue));
    expect(error.message).toContain("did not answer within 200 ms");
  });

  test("a body that Redis itself refuses is not repeated", async () => {
    const { queue } = fresh();
    await queue.open();
    await put(queue, secretJob());
    const held = await take(queue);
    // Somebody has made another key of the lease's: Redis complains, and so do we.
    const key = `eddy:{${queue.name}}:dead`;
    await redis.server.command("SET", key, SECRET);
    const error = await failureOf(settle(queue, held, { kind: "dead", error: SECRET }));
    expect(error.message).toContain("holds another type than it should (WRONGTYPE, line ");
  });

  test("a verb before open says so", async () => {
    const { queue } = fresh();
    expect((await failureOf(take(queue))).message).toContain("open()");
  });
});
