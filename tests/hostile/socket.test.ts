/** Hostile bytes to the server of a worker, over a real socket: it answers or hangs up, and goes on serving the others. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { serveHttp } from "../../runtimes/bun/http_server.ts";
import type { HttpServer } from "../../runtimes/cli/address.ts";
import { memoryBroker, openApp } from "../http/fixture.ts";
import { rawHttp } from "../support/raw_http.ts";
import { BODY, body, expectClean, expectNoCanary, nested, TOKEN, tried } from "./hostile.ts";

const MEGABYTE = 1_048_576;
const log: string[] = [];
let server: HttpServer;
let port: number;

beforeAll(() => {
  const app = openApp({
    broker: memoryBroker(),
    requireToken: true,
    token: TOKEN,
    log: (...line) => log.push(JSON.stringify(line)),
  });
  server = serveHttp({ host: "127.0.0.1", port: 0 }, (request) => app.fetch(request));
  port = Number(new URL(server.url).port);
});
afterAll(async () => {
  await server.stop(0);
  // Whatever was sent: no fault inside, and nothing told of it.
  expect(log).toEqual([]);
  expectClean();
});

const AUTH = `Authorization: Bearer ${TOKEN}\r\n`;
const JOBS = "/v1/queues/notes/jobs";

/** One request as it goes over the wire; the connection ends with it. */
function wire(line: string, headers: string, sent = ""): string {
  return `${line} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n${AUTH}${headers}\r\n${sent}`;
}

/** What was answered: nothing where the server hung up, else a status that is no fault. */
function expectNoFault(answer: string): number | undefined {
  expectNoCanary(answer);
  if (answer === "") return undefined;
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1]);
  expect(status).toBeGreaterThanOrEqual(200);
  // Of the faults only "HTTP version not supported", which is none.
  if (status !== 505) expect(status).toBeLessThan(500);
  return status;
}

async function expectServing(): Promise<void> {
  const headers = { authorization: `Bearer ${TOKEN}` };
  expect((await fetch(`${server.url}/v1/queues`, { headers })).status).toBe(200);
}

test("requests that are none, or two in one, are refused or cut off", async () => {
  const long = "x".repeat(100_000);
  for (const request of [
    "\r\n\r\n",
    "GET\r\n\r\n",
    "GET /v1/queues HTTP/9.9\r\n\r\n",
    `${BODY} / HTTP/1.1\r\n\r\n`,
    "\u0016\u0003\u0001\u0002\u0000\u0001\u0000",
    wire("GET /v1/queues/emails%0d%0aSet-Cookie:%20a=b/dead", ""),
    wire("GET /v1/queues/emails\u0000/dead", ""),
    wire("GET /v1/../v1/./queues/%2e%2e/dead", ""),
    wire(`GET /v1/queues?${long}`, ""),
    wire("GET /v1/queues", `X-Long: ${long}\r\n`),
    wire("GET /v1/queues", "A: b\r\n".repeat(2_000)),
    wire("GET /v1/queues", " folded: x\r\n"),
    wire("GET /v1/queues", "no colon\r\n"),
    wire(`POST ${JOBS}`, "Content-Length: -1\r\n", BODY),
    wire(`POST ${JOBS}`, "Content-Length: 99999999999999999999\r\n", BODY),
    wire(`POST ${JOBS}`, "Content-Length: 5\r\nContent-Length: 500\r\n", BODY),
    wire(`POST ${JOBS}`, "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", `0\r\n\r\n${BODY}`),
    wire(`POST ${JOBS}`, "Transfer-Encoding: chunked\r\n", `zz\r\n${BODY}\r\n`),
    wire(`POST ${JOBS}`, "Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
    wire(`POST ${JOBS}`, `Eddy-Id: ${BODY} x\r\nContent-Length: 1\r\n`, "x"),
    wire(`POST ${JOBS}`, "Eddy-Header-A: b\u0001c\r\nContent-Length: 1\r\n", "x"),
    wire("TRACE /v1/queues", ""),
    wire("CONNECT 127.0.0.1:80", ""),
  ]) {
    expectNoFault(await rawHttp(port, request, { end: true }));
    await expectServing();
  }
}, 60_000);

test("any bytes are refused or cut off", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 200 }), fc.boolean(), async (bytes, begun) => {
      const start = begun ? wire(`POST ${JOBS}`, "Content-Length: 300\r\n") : "";
      const sent = new Uint8Array([...new TextEncoder().encode(start), ...bytes]);
      expectNoFault(await rawHttp(port, sent, { end: true }));
    }),
    tried(200),
  );
  await expectServing();
}, 60_000);

test("any body, in any pieces, is taken or refused", async () => {
  await fc.assert(
    fc.asyncProperty(body, fc.integer({ min: 1, max: 50 }), async (sent, pieces) => {
      const bytes = typeof sent === "string" ? new TextEncoder().encode(sent) : sent;
      const size = Math.ceil(bytes.length / pieces);
      const stream = new ReadableStream<Uint8Array>({
        start(controller) {
          for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
          controller.close();
        },
      });
      const answer = await fetch(`${server.url}/v1/queues/emails/jobs`, {
        method: "POST",
        body: stream,
        headers: { authorization: `Bearer ${TOKEN}` },
      });
      const told = await answer.text();
      expectNoCanary(told);
      JSON.parse(told);
      expect([200, 201, 413, 422]).toContain(answer.status);
    }),
    tried(150),
  );
}, 60_000);

test("ten megabytes are refused while they are sent, as one body and as many lines", async () => {
  const headers = { authorization: `Bearer ${TOKEN}` };
  const large = BODY.repeat(Math.ceil((10 * MEGABYTE) / BODY.length));
  const one = await fetch(`${server.url}${JOBS}`, { method: "POST", body: large, headers });
  expect(one.status).toBe(413);
  expectNoCanary(await one.text());
  const deep = nested(5 * MEGABYTE);
  expect((await fetch(`${server.url}/v1/drain`, { method: "POST", body: deep, headers })).status).toBe(413);
  const lines = `${BODY.repeat(70_000)}\nx\n`.repeat(14);
  const type = { "content-type": "application/x-ndjson" };
  const many = await fetch(`${server.url}${JOBS}`, {
    method: "POST",
    body: lines,
    headers: { ...headers, ...type },
  });
  expect(many.status).toBe(207);
  expectNoCanary(await many.text());
  await expectServing();
}, 60_000);

test("senders that are slow, or break off, hold nobody up", async () => {
  const begun = [
    "",
    "POST /v1/que",
    `POST ${JOBS} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: `,
    wire(`POST ${JOBS}`, "Content-Length: 1000\r\n", BODY),
    wire(`POST ${JOBS}`, "Transfer-Encoding: chunked\r\n", `3e8\r\n${BODY}`),
    wire(`POST ${JOBS}`, "Content-Type: application/x-ndjson\r\nContent-Length: 1000\r\n", `${BODY}\n{"a`),
    wire("POST /v1/drain", "Content-Length: 1000\r\n", "{"),
  ];
  const sockets = await Promise.all(
    Array.from({ length: 70 }, (_, i) => {
      const text = begun[i % begun.length]!;
      return Bun.connect({
        hostname: "127.0.0.1",
        port,
        socket: { open: (socket) => void socket.write(text), data: () => {} },
      });
    }),
  );
  for (let i = 0; i < 10; i += 1) await expectServing();
  for (const [i, socket] of sockets.entries()) {
    if (i % 2 === 0) socket.terminate();
    else socket.end();
  }
  await expectServing();
}, 60_000);
