/** What goes over the wire is what Upstash's own client sends, so what serves that client serves the broker. */
import { expect, test } from "bun:test";
import { Redis } from "@upstash/redis/cloudflare";
import { RedisClient } from "../../adapters/redis/client.ts";

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly token: string | null;
  readonly type: string | null;
  readonly body: readonly string[];
}

/** Serves a Redis that knows no script by its digest, and tells what it was sent. */
async function sentBy(work: (url: string) => Promise<unknown>): Promise<{ sent: Sent[]; result: unknown }> {
  const sent: Sent[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const [command, ...operands] = (await request.json()) as unknown[];
      // Redis reads commands in either case, and numbers (that of the keys is one in that client) as texts.
      const body = [String(command).toUpperCase(), ...operands.map(String)];
      sent.push({
        method: request.method,
        path: new URL(request.url).pathname,
        token: request.headers.get("authorization"),
        type: request.headers.get("content-type"),
        body,
      });
      if (body[0] !== "EVALSHA") return Response.json({ result: ["ok", "123", 7, null, "ß€😀\u0000"] });
      return Response.json({ error: "NOSCRIPT No matching script." }, { status: 400 });
    },
  });
  try {
    return { result: await work(`http://127.0.0.1:${server.port}`), sent };
  } finally {
    await server.stop(true);
  }
}

const KEYS = ["eddy:{q}:queue", "eddy:{q}:ready:0"];
const ARGS = ["", '"quoted"\n|\\', "ß€😀\u0000\u2028", "9007199254740993"];
const SCRIPT = "return {'ok'}";

function upstash(url: string): Redis {
  return new Redis({
    url,
    token: "secret",
    retry: { retries: 0 },
    automaticDeserialization: false,
    responseEncoding: false,
    enableAutoPipelining: false,
    enableTelemetry: false,
    readYourWrites: false,
  });
}

const own = (url: string) => new RedisClient({ url, token: "secret", timeoutMs: 5_000, onRequest: () => {} });

test("a script, by its digest and then by its text", async () => {
  const theirs = await sentBy((url) => upstash(url).createScript(SCRIPT).exec(KEYS, ARGS));
  const ours = await sentBy((url) => own(url).run("claim", SCRIPT, KEYS, ARGS));
  expect(ours.sent.map(({ body }) => body[0])).toEqual(["EVALSHA", "EVAL"]);
  expect(ours).toEqual(theirs);
});

test("a command", async () => {
  const theirs = await sentBy((url) => upstash(url).exec(["PUBLISH", "channel", "1"]));
  const ours = await sentBy((url) => own(url).command("watch", ["PUBLISH", "channel", "1"]));
  expect(ours).toEqual(theirs);
});
