/** `redis-http` as a command, in a process of its own. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readCommandLine } from "../../runtimes/bun/gateway/options.ts";
import { type RedisServer, startRedis } from "../support/redis_server.ts";

const MAIN = new URL("../../runtimes/bun/gateway/main.ts", import.meta.url).pathname;
let server: RedisServer;

beforeAll(async () => {
  server = await startRedis();
});
afterAll(async () => {
  await server.stop();
});

function run(args: string[], env: Record<string, string> = {}) {
  return Bun.spawn([process.execPath, MAIN, ...args], {
    env: { ...Bun.env, ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}

async function readUntil(stream: ReadableStream<Uint8Array>, pattern: RegExp): Promise<RegExpExecArray> {
  const reader = stream.pipeThrough(new TextDecoderStream() as never).getReader();
  let text = "";
  for (;;) {
    const match = pattern.exec(text);
    if (match !== null) {
      reader.releaseLock();
      return match;
    }
    const { value, done } = await reader.read();
    if (done) throw new Error(`the command ended without ${pattern}`);
    text += value;
  }
}

test("it makes a token when none is given, prints it once, serves, and stops on SIGTERM", async () => {
  const child = run(["--redis", server.url, "--port", "0"]);
  const [, url, token] = await readUntil(child.stdout, /at (http\S+)\nToken: (\S{32})\n/);
  const answer = await fetch(url as string, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body: '["PING"]',
  });
  expect(await answer.json()).toEqual({ result: "PONG" });
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
});

test("it takes Redis and token from the environment and then prints no token", async () => {
  const child = run(["--port", "0"], {
    EDDY_REDIS_URL: server.url,
    EDDY_REDIS_HTTP_TOKEN: "from-the-environment",
  });
  const [text, url] = await readUntil(child.stdout, /at (http\S+)\n/);
  expect(text).not.toContain("from-the-environment");
  const answer = await fetch(`${url}/ping`, { headers: { authorization: "Bearer from-the-environment" } });
  expect(answer.status).toBe(200);
  child.kill("SIGINT");
  expect(await child.exited).toBe(0);
});

test("--help explains, a wrong option is told, and neither starts anything", async () => {
  const help = run(["--help"]);
  expect(await new Response(help.stdout).text()).toContain("--redis URL");
  expect(await help.exited).toBe(0);
  const wrong = run(["--prot", "1"]);
  expect(await new Response(wrong.stderr).text()).toContain("--prot");
  expect(await wrong.exited).toBe(2);
});

test("a bad Redis URL ends it with a message that does not repeat it", async () => {
  const child = run(["--redis", "http://user:hunter2@host", "--port", "0", "--token", "t"]);
  const text = await new Response(child.stderr).text();
  expect(await child.exited).toBe(1);
  expect(text).toContain("must look like redis://");
  expect(text).not.toContain("hunter2");
});

test("the command line is read without guessing", () => {
  expect(readCommandLine(["--port", "99999"], {}).kind).toBe("wrong");
  const stray = readCommandLine(["my-token"], {});
  expect(stray.kind).toBe("wrong");
  expect(JSON.stringify(stray)).not.toContain("my-token");
  expect(readCommandLine([], {})).toEqual({
    kind: "serve",
    redis: "redis://127.0.0.1:6379",
    port: 8079,
    hostname: "127.0.0.1",
    token: undefined,
  });
});
