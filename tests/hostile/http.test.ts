/** Hostile requests to the HTTP app, in this process: never a fault of the server, and nothing that was sent is told back. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Broker } from "../../src/broker.ts";
import { definitionOf, memoryBroker, openApp } from "../http/fixture.ts";
import { BODY, body, expectClean, expectNoCanary, json, TOKEN, text, tried } from "./hostile.ts";

const segment = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom("emails", "notes") },
  fc.constantFrom("..", ".", "%2e%2e%2femails", "emails%2F..%2Fnotes", "emails%00", "%ff", "%", "%E0%A4%A"),
  fc.constantFrom(
    "emails%0d%0aSet-Cookie:%20polluted=1",
    "__proto__",
    "constructor",
    "emails;a=b",
    "*",
    "%2a",
  ),
  fc.constant("q".repeat(5_000)),
  text.map((some) => encodeURIComponent(some.toWellFormed())),
);
const verb = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("jobs", "ready", "delayed", "held", "dead") },
  { weight: 2, arbitrary: fc.constantFrom("redrive", "clear", "pause", "resume") },
  segment,
);
const path = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(segment, verb).map(([name, what]) => `/v1/queues/${name}/${what}`) },
  fc.constantFrom("/health", "/metrics", "/v1/queues", "/v1/drain", "/", "//", "/v1", "/v1//queues"),
  fc.array(segment, { maxLength: 5 }).map((parts) => `/${parts.join("/")}`),
);
const query = fc.oneof(
  { weight: 4, arbitrary: fc.constant("") },
  fc.constantFrom("?limit=1", "?bodies=true", "?limit=99999999999", "?limit=1e2&bodies=TRUE", "?__proto__=1"),
  fc.constantFrom("?%ff=%ff", "?&&==&", "?x", "?constructor[prototype][polluted]=1"),
  text.map((some) => `?limit=${encodeURIComponent(some.toWellFormed())}`),
);
const method = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom("GET", "POST") },
  fc.constantFrom("HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "QUERY", "X-ODD"),
);
const headerName = fc.constantFrom(
  "eddy-id",
  "eddy-delay-ms",
  "eddy-priority",
  "eddy-header-trace",
  "eddy-header-__proto__",
  "eddy-header-constructor",
  "eddy-header-",
  "eddy-odd",
  "content-type",
  "content-encoding",
  "content-length",
  "transfer-encoding",
  "origin",
  "x-forwarded-for",
);
const headerValue = fc.oneof(
  fc.constantFrom("application/x-ndjson", "application/json", "high", "0", "60000", "1e3", "-1", "id-1"),
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.constant("v".repeat(5_000)),
);
const authorization = fc.oneof(
  { weight: 6, arbitrary: fc.constant(`Bearer ${TOKEN}`) },
  fc.constantFrom("", "Bearer", `Bearer ${TOKEN}x`, `Basic ${TOKEN}`, `Bearer ${TOKEN} ${TOKEN}`),
);
const request = fc.record({
  method,
  path,
  query,
  headers: fc.dictionary(headerName, headerValue, { maxKeys: 4 }),
  authorization,
  body: fc.option(body),
});

/** The headers that a request can have; the others no client could send. */
function headersOf(given: Readonly<Record<string, string>>, token: string): Headers {
  const headers = new Headers({ authorization: token, "x-hush": BODY, cookie: BODY });
  for (const [name, value] of Object.entries(given)) {
    try {
      headers.set(name, value);
    } catch {
      // No header can be so.
    }
  }
  return headers;
}

function open(broker: Broker = memoryBroker()) {
  const log: string[] = [];
  const app = openApp({
    definition: definitionOf(),
    broker,
    requireToken: true,
    token: TOKEN,
    log: (...line) => log.push(JSON.stringify(line)),
  });
  return { app, log };
}

async function expectFit(response: Response, bodiesAsked: boolean): Promise<void> {
  expect(response.status).not.toBe(500);
  expect(response.headers.get("set-cookie")).toBeNull();
  for (const [name, value] of response.headers) expectNoCanary(`${name}: ${value}`);
  const answer = await response.text();
  if (response.status >= 400 || !bodiesAsked) expectNoCanary(answer);
  else expect(answer).not.toContain(TOKEN);
  if (response.status < 400) return;
  expect(response.headers.get("content-type")).toStartWith("application/json");
  if (answer === "") return;
  const told = JSON.parse(answer) as { error: string; code: string };
  // Of many lines each one's refusal is told.
  if ("rejected" in told && !("error" in told)) return;
  expect(told.error).toMatch(/^(Cannot|The) /);
  expect(told.code).toMatch(/^[a-z-]+$/);
}

test("any method, path, header and body is answered, and never by a fault", async () => {
  const { app, log } = open();
  await fc.assert(
    fc.asyncProperty(request, async (one) => {
      const url = `http://127.0.0.1${one.path}${one.query}`;
      const takesBody = one.method !== "GET" && one.method !== "HEAD" && one.body !== null;
      const sent = new Request(url, {
        method: one.method,
        headers: headersOf(one.headers, one.authorization),
        ...(takesBody ? { body: one.body } : {}),
      });
      const response = await app.request(sent);
      // A method that it does not know is GET to this runtime. A job's own header may hold anything and is shown with the job.
      const shows = one.query.includes("bodies=true") || one.path.includes("/v1/queues/");
      await expectFit(response, shows && sent.method === "GET");
    }),
    tried(4_000),
  );
  expectClean();
  // Nothing was told of a fault, and what was logged gives nothing away.
  expect(log.filter((line) => line.includes("inside the server"))).toEqual([]);
  expectNoCanary(log.join("\n"));
}, 60_000);

test("a look without bodies shows none", async () => {
  const { app } = open();
  await fc.assert(
    fc.asyncProperty(body, fc.constantFrom("emails", "notes"), async (sent, queue) => {
      const headers = { authorization: `Bearer ${TOKEN}` };
      const jobs = `http://127.0.0.1/v1/queues/${queue}/jobs`;
      for (const type of ["application/json", "application/x-ndjson"]) {
        const answer = await app.request(jobs, {
          method: "POST",
          body: sent,
          headers: { ...headers, "content-type": type },
        });
        await expectFit(answer, false);
      }
      for (const state of ["ready", "dead"]) {
        const look = await app.request(`http://127.0.0.1/v1/queues/${queue}/${state}?limit=3`, { headers });
        expect(look.status).toBe(200);
        expectNoCanary(await look.text());
      }
    }),
    tried(300),
  );
}, 60_000);

test("any options are answered, and never by a fault", async () => {
  const { app, log } = open();
  const options = fc.oneof(
    body,
    fc
      .record(
        {
          ids: fc.oneof(fc.array(text, { maxLength: 3 }), json),
          limit: fc.oneof(fc.double(), fc.integer(), text),
          states: fc.array(fc.oneof(fc.constantFrom("ready", "delayed", "dead"), text), { maxLength: 3 }),
          maxJobs: fc.oneof(fc.double(), fc.nat(), text),
          queues: fc.array(fc.oneof(fc.constantFrom("emails", "notes"), text), { maxLength: 3 }),
        },
        { requiredKeys: [] },
      )
      .map((value) => JSON.stringify(value)),
  );
  const target = fc.constantFrom("/v1/queues/emails/redrive", "/v1/queues/emails/clear", "/v1/drain");
  await fc.assert(
    fc.asyncProperty(target, options, async (where, sent) => {
      const answer = await app.request(`http://127.0.0.1${where}`, {
        method: "POST",
        body: sent,
        headers: { authorization: `Bearer ${TOKEN}` },
      });
      await expectFit(answer, false);
    }),
    tried(1_000),
  );
  expectClean();
  expect(log.filter((line) => line.includes("inside the server"))).toEqual([]);
}, 60_000);

test("a dead letter's reason holds nothing of a body that cannot be read", async () => {
  const broker = memoryBroker();
  const { app, log } = open(broker);
  const queue = broker.queue("emails", { leaseMs: 10_000, requestTimeoutMs: 1_000, dedupeWindowMs: 1_000 });
  await queue.open();
  let count = 0;
  await fc.assert(
    fc.asyncProperty(body, async (sent) => {
      count += 1;
      const job = { id: `j${count}`, body: sent, headers: {}, priority: "normal" } as const;
      await queue.enqueue(`r${count}`, [{ ...job, delayMs: 0, dedupe: false }]);
    }),
    tried(200),
  );
  const headers = { authorization: `Bearer ${TOKEN}` };
  const drained = await app.request("http://127.0.0.1/v1/drain", { method: "POST", headers });
  expectNoCanary(await drained.text());
  const dead = await app.request("http://127.0.0.1/v1/queues/emails/dead?limit=1000", { headers });
  const told = await dead.text();
  expectNoCanary(told);
  expect((JSON.parse(told) as { jobs: unknown[] }).jobs.length).toBeGreaterThan(50);
  expectNoCanary(log.join("\n"));
  const metrics = await app.request("http://127.0.0.1/metrics", { headers });
  expectNoCanary(await metrics.text());
}, 60_000);
