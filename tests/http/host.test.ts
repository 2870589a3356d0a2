/** Requests whose Host header is missing or no host: answered with 400, never with a fault of the server. */
import { expect, test } from "bun:test";
import { serveHttp } from "../../runtimes/bun/http_server.ts";
import { rawHttp } from "../support/raw_http.ts";
import { openApp } from "./fixture.ts";

const ODD = [
  "GET /v1/queues HTTP/1.0\r\n\r\n",
  ...["Host: [", "Host: a b", "Host:"].map(
    (host) => `GET /v1/queues HTTP/1.1\r\n${host}\r\nConnection: close\r\n\r\n`,
  ),
];

function expectBadRequest(answer: string): void {
  expect(answer).toStartWith("HTTP/1.1 400 ");
  expect(JSON.parse(answer.slice(answer.indexOf("\r\n\r\n")))).toEqual({
    error: "Cannot read the request: its Host header is missing or malformed",
    code: "invalid-host",
  });
}

test("by the server of a worker", async () => {
  const app = openApp();
  const server = serveHttp({ host: "127.0.0.1", port: 0 }, (request) => app.fetch(request));
  try {
    for (const request of ODD) expectBadRequest(await rawHttp(Number(new URL(server.url).port), request));
    expect((await fetch(`${server.url}/v1/queues`)).status).toBe(200);
    // A load balancer's look needs none.
    for (const method of ["GET", "HEAD", "OPTIONS"]) {
      const answer = await rawHttp(Number(new URL(server.url).port), `${method} /health HTTP/1.0\r\n\r\n`);
      expect(answer).toStartWith(`HTTP/1.1 ${method === "OPTIONS" ? 405 : 200} `);
    }
  } finally {
    await server.stop(0);
  }
});

test("by the app behind any other server", async () => {
  const app = openApp();
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => app.fetch(request) });
  try {
    // Where the server gives no host at all the app finds no such path; this one it does find.
    expectBadRequest(await rawHttp(server.port!, ODD[1]!));
  } finally {
    await server.stop(true);
  }
});
