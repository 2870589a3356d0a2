/** A token that no header can carry would lock everybody out: it is refused where it is set, and never repeated. */
import { describe, expect, test } from "bun:test";
import { startGateway } from "../../runtimes/bun/gateway/gateway.ts";
import { createWorkersHandler } from "../../runtimes/workers/handler.ts";
import { createApp } from "../../src/http/mod.ts";
import { eddy } from "../cli/process.ts";
import { definitionOf, memoryBroker, openApp, platform } from "./fixture.ts";

const EXAMPLE = new URL("../../examples/worker.ts", import.meta.url).pathname;

const UNUSABLE = [
  "two hush",
  " hush",
  "hush ",
  "hush\n",
  "\thush",
  "hush\u0000",
  "hush\u007f",
  "hüsh",
  "hush\u00a0",
  "hush🔑",
];

/** What is thrown, as a text. */
function thrown(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError);
    return (error as Error).message;
  }
  throw new Error("nothing was thrown");
}

describe("a token with a space or a character outside printable ASCII", () => {
  test("makes no app", () => {
    for (const token of UNUSABLE) {
      const text = thrown(() => createApp({ broker: memoryBroker(), platform, requireToken: true, token }));
      expect(text).toMatch(
        /^Cannot serve HTTP: the token .*give printable ASCII without space.*EDDY_HTTP_TOKEN/,
      );
      expect(text).not.toMatch(/h.sh/);
    }
  });

  test("starts no gateway", () => {
    for (const token of UNUSABLE) {
      const text = thrown(() => startGateway({ token }));
      expect(text).toMatch(/^Cannot start the gateway: token .*give printable ASCII without space/);
      expect(text).not.toMatch(/h.sh/);
    }
  });

  test("ends the command with 1 and a sentence, before anything is started", async () => {
    for (const token of ["two hush", "hüsh"]) {
      const ended = await eddy(["worker", EXAMPLE, "--http", "0", "--broker", "memory:"], {
        env: { EDDY_HTTP_TOKEN: token },
      });
      expect([ended.code, ended.out]).toEqual([1, ""]);
      expect(ended.err).toMatch(/^Cannot serve HTTP: .*EDDY_HTTP_TOKEN.*\n$/);
      expect(ended.err).not.toMatch(/h.sh/);
    }
  });
});

describe("a Worker", () => {
  const ctx = { waitUntil: () => {} };
  function handlerOf(token: string | undefined, lines: unknown[]) {
    return createWorkersHandler<unknown>({
      definition: definitionOf(),
      broker: () => memoryBroker(),
      token: () => token,
      log: (...line) => lines.push(line),
    });
  }

  test("answers 503 and says what is wrong; its health is told all the same", async () => {
    for (const token of UNUSABLE) {
      const lines: unknown[] = [];
      const handler = handlerOf(token, lines);
      const response = await handler.fetch(new Request("https://queue.example/v1/queues"), {}, ctx);
      const text = await response.text();
      expect([response.status, JSON.parse(text).code]).toEqual([503, "not-configured"]);
      expect(text).toContain("printable ASCII without space");
      const health = await handler.fetch(new Request("https://queue.example/health"), {}, ctx);
      expect(health.status).toBe(200);
      expect(text + JSON.stringify(lines)).not.toMatch(/h.sh/);
      expect(lines).toHaveLength(1);
    }
  });

  test("says of one that is missing that it is not set", async () => {
    for (const token of [undefined, ""]) {
      const response = await handlerOf(token, []).fetch(
        new Request("https://queue.example/v1/queues"),
        {},
        ctx,
      );
      expect(await response.json()).toMatchObject({ error: expect.stringContaining("is not set") });
    }
  });
});

test("any printable ASCII without space lets its bearer in", async () => {
  const token = Array.from({ length: 94 }, (_, i) => String.fromCharCode(0x21 + i)).join("");
  const headers = { Authorization: `Bearer ${token}` };
  const app = openApp({ requireToken: true, token });
  expect((await app.request("http://queue.example/v1/queues", { headers })).status).toBe(200);
  const ctx = { waitUntil: () => {} };
  const handler = createWorkersHandler<unknown>({
    definition: definitionOf(),
    broker: () => memoryBroker(),
    token: () => token,
  });
  const served = await handler.fetch(new Request("https://queue.example/v1/queues", { headers }), {}, ctx);
  expect(served.status).toBe(200);
});

test("an app is made of what it was promised, told by its name; a flag that is left out lets nobody in", () => {
  const usable = { broker: memoryBroker(), platform, requireToken: false };
  for (const [field, values] of [
    ["requireToken", [undefined, null, 0, "", "false", {}]],
    ["broker", [undefined, null, 5, {}]],
    ["platform", [undefined, {}]],
    ["definition", [null, 5, {}, []]],
    ["worker", [null, 5, {}]],
    ["log", [null, {}, "console"]],
    ["stopping", [null, {}, true]],
    ["drainLock", [null, {}, 5]],
  ] as const) {
    for (const value of values) {
      const make = () => createApp({ ...usable, [field]: value } as never);
      const told = field === "definition" ? "the worker" : field;
      expect(make).toThrow(new RegExp(`^Cannot make the HTTP app: ${told} is .+; give `));
      expect(make).toThrow(TypeError);
    }
  }
  expect(() => createApp(undefined as never)).toThrow(TypeError);
  createApp({ ...usable, worker: undefined, log: () => {}, stopping: AbortSignal.abort() } as never);
});
