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

/** A stream's lines, waited for one by one. */
class Seen {
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  readonly #decoder = new TextDecoder();
  #text = "";

  read(stream: ReadableStream<Uint8Array>): void {
    this.#reader = stream.getReader();
  }

  /** Waits for the line of this number, from 1 on, and checks it. */
  async has(number: number, pattern: RegExp): Promise<void> {
    let lines = this.#text.split("\n");
    while (lines.length <= number) {
      const read = await this.#reader?.read();
      if (read === undefined || read.done) throw new Error(`the command ended after ${this.#text}`);
      this.#text += this.#decoder.decode(read.value, { stream: true });
      lines = this.#text.split("\n");
    }
    expect(lines[number - 1]).toMatch(pattern);
    expect(this.#text).not.toContain("hunter2");
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
  // As npm does, which passes on what the terminal has sent already.
  child.kill("SIGINT");
  child.kill("SIGINT");
  expect(await child.exited).toBe(0);
});

test("on an IPv6 address, however it is written, it prints an address that can be asked", async () => {
  for (const host of ["::1", "[::1]"]) {
    const child = run(["--redis", server.url, "--port", "0", "--host", host], { EDDY_REDIS_HTTP_TOKEN: "t" });
    const [, url] = await readUntil(child.stdout, /at (http:\S+)\n/);
    const answer = await fetch(url as string, {
      method: "POST",
      headers: { authorization: "Bearer t" },
      body: '["PING"]',
    });
    expect(await answer.json()).toEqual({ result: "PONG" });
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
  }
});

test("--help explains, a wrong option is told, and neither starts anything", async () => {
  for (const asked of ["--help", "-h"]) {
    const help = run([asked]);
    const text = await new Response(help.stdout).text();
    expect(text).toContain("--redis URL");
    expect(text).toContain("--help, -h");
    expect(await help.exited).toBe(0);
  }
  const wrong = run(["--prot", "1"]);
  expect(await new Response(wrong.stderr).text()).toContain("--prot");
  expect(await wrong.exited).toBe(2);
});

test("a bad Redis URL ends it with a message that does not repeat it", async () => {
  const url = "http://user:hunter2@host";
  for (const [args, env, code] of [
    [["--redis", url], {}, 2],
    [[], { EDDY_REDIS_URL: url }, 1],
  ] as [string[], Record<string, string>, number][]) {
    const child = run([...args, "--port", "0", "--token", "t"], env);
    const text = await new Response(child.stderr).text();
    expect(await child.exited).toBe(code);
    expect(text).toContain("must look like redis://");
    expect(text).not.toContain("hunter2");
  }
});

/** Runs the command on a Redis of its own, which `act` may stop and start. */
async function watched(
  address: (own: RedisServer) => string,
  act: (own: RedisServer, seen: Seen, start: () => void) => Promise<void>,
): Promise<void> {
  const own = await startRedis();
  let child: ReturnType<typeof run> | undefined;
  const seen = new Seen();
  try {
    await act(own, seen, () => {
      child = run(["--port", "0"], { EDDY_REDIS_URL: address(own), EDDY_REDIS_HTTP_TOKEN: "t" });
      seen.read(child.stderr);
    });
  } finally {
    child?.kill("SIGTERM");
    await child?.exited;
    await own.stop();
  }
}

test("it tells that its Redis is gone, at the start and later, and that it is back", async () => {
  await watched(
    (own) => own.url,
    async (own, seen, start) => {
      await own.kill();
      start();
      const where = `127\\.0\\.0\\.1:${own.port}`;
      await seen.has(1, new RegExp(`^Cannot reach Redis at ${where}; until it answers requests get 503`));
      await own.restart();
      await seen.has(2, new RegExp(`^Redis at ${where} answers again$`));
      await own.kill();
      await seen.has(3, new RegExp(`^Lost the connection to Redis at ${where}; until it answers`));
    },
  );
});

test("it tells of a Redis that refuses it, without the password", async () => {
  await watched(
    (own) => `redis://:hunter2@127.0.0.1:${own.port}`,
    async (_own, seen, start) => {
      start();
      await seen.has(1, /^Redis refuses the connection: .+; until it answers requests get 503/);
    },
  );
  await watched(
    (own) => own.url,
    async (own, seen, start) => {
      await own.command("CONFIG", "SET", "requirepass", "hunter2");
      start();
      await seen.has(1, /^Redis at \S+ refuses commands: NOAUTH .+; until it answers requests get 503/);
    },
  );
});

test("the command line is read without guessing", () => {
  for (const [args, text] of [
    [["--port", "1", "--port", "2"], "--port is given twice"],
    [["--token", "hush", "--token=hush"], "--token is given twice"],
    [["--host", ""], "--host is empty"],
    [["--port="], "--port is empty"],
    [["--port", "1e3"], "--port does not fit; give a number from 0 to 65535"],
    [["--port", " 5"], "--port does not fit"],
    [["--token", "hush hush"], "token has a space"],
  ] as const) {
    const line = readCommandLine(args, {});
    expect(line).toEqual({ kind: "wrong", code: 2, message: expect.stringContaining(text) });
    expect(JSON.stringify(line)).not.toContain("hush");
  }
  expect(readCommandLine([], { EDDY_REDIS_HTTP_TOKEN: "hush hush" })).toMatchObject({
    kind: "wrong",
    code: 1,
  });
  expect(readCommandLine([], { EDDY_REDIS_URL: "" })).toMatchObject({ redis: "redis://127.0.0.1:6379" });
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
