/** Who gets in: with the token, or without one from a program on this machine only. */
import { describe, expect, test } from "bun:test";
import { isLoopbackHost, tokenMatcher } from "../../src/http/auth.ts";
import { createApp } from "../../src/http/mod.ts";
import { ask, definitionOf, expectRefusal, memoryBroker, openApp, platform, post } from "./fixture.ts";

const TOKEN = "hush-1f0c2a";
const PATHS = [
  ["GET", "/v1/queues"],
  ["GET", "/v1/queues/emails/dead"],
  ["POST", "/v1/queues/emails/jobs"],
  ["POST", "/v1/queues/emails/clear"],
  ["POST", "/v1/drain"],
  ["GET", "/metrics"],
  ["GET", "/v1/nowhere"],
] as const;

describe("an app with a token", () => {
  const app = openApp({ token: TOKEN, requireToken: true });

  test("lets nobody in without it, and says nothing of it", async () => {
    const wrong = [
      "",
      "Bearer",
      "Bearer ",
      `Bearer ${TOKEN}x`,
      `Bearer ${TOKEN.slice(0, -1)}`,
      `Basic ${TOKEN}`,
      TOKEN,
    ];
    for (const [method, path] of PATHS) {
      for (const authorization of [undefined, ...wrong]) {
        const headers = authorization === undefined ? {} : { Authorization: authorization };
        expectRefusal(await ask(app, path, { method, headers }), 401, "unauthorized", TOKEN);
      }
    }
    const response = await app.request("http://127.0.0.1/v1/queues");
    expect(response.headers.get("www-authenticate")).toBe("Bearer");
  });

  test("lets its bearer in, under any host name", async () => {
    for (const scheme of ["Bearer", "bearer"]) {
      const response = await app.request("http://queue.example.com/v1/queues", {
        headers: { Authorization: `${scheme} ${TOKEN}`, Origin: "https://admin.example.com" },
      });
      expect(response.status).toBe(200);
    }
  });

  test("tells its health to anybody", async () => {
    expect(await ask(app, "/health")).toMatchObject({ status: 200, json: { status: "ok" } });
  });

  test("cannot be made with an empty one", () => {
    for (const token of [{}, { token: "" }]) {
      expect(() =>
        createApp({
          definition: definitionOf(),
          broker: memoryBroker(),
          platform,
          requireToken: true,
          ...token,
        }),
      ).toThrow("Cannot serve HTTP: the token is empty");
    }
  });
});

describe("an app without a token", () => {
  const app = openApp();

  test("lets programs on this machine in", async () => {
    for (const host of ["localhost:8787", "127.0.0.1", "127.9.9.9:1", "[::1]:8787"]) {
      expect((await app.request(`http://${host}/v1/queues`)).status).toBe(200);
    }
  });

  test("refuses what a page of another origin sends, and a name that was made to point here", async () => {
    const page = await post(app, "/v1/queues/emails/clear", '{"states":["ready"]}', {
      Origin: "https://evil.example",
    });
    expectRefusal(page, 403, "not-loopback");
    expectRefusal(await post(app, "/v1/drain", "", { Origin: "null" }), 403, "not-loopback");
    for (const host of ["rebound.example", "127.0.0.1.evil.example", "localhost.evil.example"]) {
      expect((await app.request(`http://${host}/v1/queues`)).status).toBe(403);
    }
    expect((await post(app, "/v1/drain", "", { Origin: "http://localhost:3000" })).status).toBe(200);
  });
});

test("tokens are told apart wherever they differ", async () => {
  const matches = tokenMatcher("abcdef");
  expect(await matches("abcdef")).toBe(true);
  for (const given of ["abcdeg", "bbcdef", "abcde", "abcdeff", "", "ABCDEF"])
    expect(await matches(given)).toBe(false);
});

test("loopback names", () => {
  for (const host of ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "::1", "[::1]"]) {
    expect(isLoopbackHost(host)).toBe(true);
  }
  for (const host of [
    "0.0.0.0",
    "::",
    "10.0.0.1",
    "example.com",
    "127.0.0.1.example.com",
    "1127.0.0.1",
    "",
  ]) {
    expect(isLoopbackHost(host)).toBe(false);
  }
});
