/** Which broker and which address a command takes, and what Bun's Platform adds to the process. */
import { describe, expect, test } from "bun:test";
import { join, resolve } from "node:path";
import { isLoopback, parseAddress } from "../../runtimes/cli/address.ts";
import {
  type BrokerSpec,
  chooseBroker,
  describeBroker,
  type NatsLogin,
} from "../../runtimes/cli/broker_spec.ts";
import { RunningCommand } from "./process.ts";

const UPSTASH = { UPSTASH_REDIS_REST_URL: "https://up.example/", UPSTASH_REDIS_REST_TOKEN: "up" };

describe("the broker", () => {
  const redis = (url: string, token: string): BrokerSpec => ({ kind: "redis", url, token });
  const sqlite = (file: string): BrokerSpec => ({ kind: "sqlite", file });
  const choices: [string, string | undefined, Record<string, string>, BrokerSpec][] = [
    ["the default", undefined, {}, sqlite("eddy.sqlite")],
    [
      "empty variables are none",
      undefined,
      { EDDY_BROKER: "", UPSTASH_REDIS_REST_URL: "" },
      sqlite("eddy.sqlite"),
    ],
    ["Upstash's variables", undefined, UPSTASH, redis("https://up.example", "up")],
    ["EDDY_BROKER before Upstash's", undefined, { ...UPSTASH, EDDY_BROKER: "memory:" }, { kind: "memory" }],
    ["the flag before EDDY_BROKER", "sqlite:a/b.db", { EDDY_BROKER: "memory:" }, sqlite("a/b.db")],
    ["its token", "https://x.example/p", { EDDY_BROKER_TOKEN: "t" }, redis("https://x.example/p", "t")],
    [
      "Upstash's token before ours for Upstash's URL",
      undefined,
      { ...UPSTASH, EDDY_BROKER_TOKEN: "t" },
      redis("https://up.example", "up"),
    ],
    [
      "ours where Upstash's is missing",
      undefined,
      { UPSTASH_REDIS_REST_URL: "https://up.example", EDDY_BROKER_TOKEN: "t" },
      redis("https://up.example", "t"),
    ],
    [
      "Upstash's token for the same URL by flag",
      "https://up.example",
      UPSTASH,
      redis("https://up.example", "up"),
    ],
    [
      "ours before it there",
      "https://up.example",
      { ...UPSTASH, EDDY_BROKER_TOKEN: "t" },
      redis("https://up.example", "t"),
    ],
  ];
  const nats = (login: NatsLogin): BrokerSpec => ({ kind: "nats", url: "wss://n.example", login });
  choices.push(
    ["NATS without a login", "wss://n.example/", {}, nats({})],
    ["NATS with a token", "wss://n.example", { EDDY_BROKER_TOKEN: "t" }, nats({ token: "t" })],
    [
      "NATS with a user, before a token",
      "wss://n.example",
      { EDDY_BROKER_TOKEN: "t", EDDY_NATS_USER: "u", EDDY_NATS_PASSWORD: "p" },
      nats({ user: "u", password: "p" }),
    ],
    [
      "NATS with an nkey, before a user",
      "wss://n.example",
      { EDDY_BROKER_NKEY_SEED: "SU", EDDY_BROKER_TOKEN: "t", EDDY_NATS_USER: "u", EDDY_NATS_PASSWORD: "p" },
      nats({ nkeySeed: "SU" }),
    ],
    [
      "NATS with a credentials file, before all",
      "wss://n.example",
      {
        EDDY_BROKER_TOKEN: "t",
        EDDY_NATS_USER: "u",
        EDDY_BROKER_NKEY_SEED: "SU",
        EDDY_NATS_CREDS: "a.creds",
      },
      nats({ credentialsFile: "a.creds" }),
    ],
  );
  test.each(choices)("%s", (_, flag, env, expected) => {
    expect(chooseBroker(flag, env)).toEqual(expected);
  });

  test("Upstash's token goes nowhere else", () => {
    expect(() => chooseBroker("https://evil.example", UPSTASH)).toThrow("set EDDY_BROKER_TOKEN");
    expect(() => chooseBroker("https://up.example.evil.example", UPSTASH)).toThrow("set EDDY_BROKER_TOKEN");
    expect(() => chooseBroker("http://up.example", UPSTASH)).toThrow("set EDDY_BROKER_TOKEN");
  });

  test("is shown without path, query and token", () => {
    const spec = chooseBroker("https://x.example:1/hush", { EDDY_BROKER_TOKEN: "hush" });
    expect(describeBroker(spec)).toBe("https://x.example:1");
  });
});

describe("the address", () => {
  test("is a port, or a host and a port", () => {
    expect(parseAddress("8787")).toEqual({ host: "127.0.0.1", port: 8787 });
    expect(parseAddress("0.0.0.0:0")).toEqual({ host: "0.0.0.0", port: 0 });
    expect(parseAddress("localhost:1")).toEqual({ host: "localhost", port: 1 });
    expect(parseAddress("[::1]:65535")).toEqual({ host: "::1", port: 65_535 });
    for (const text of ["", "x", ":1", "1:", "::1:1", "a b:1", "http://h:1", "h:65536", "h:-1", "h:1.5"]) {
      expect(() => parseAddress(text)).toThrow("Cannot listen: the address is malformed");
    }
  });

  test("is loopback or not", () => {
    for (const text of ["1", "localhost:1", "[::1]:1", "127.0.0.2:1"])
      expect(isLoopback(parseAddress(text))).toBe(true);
    for (const text of ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "example.com:1"]) {
      expect(isLoopback(parseAddress(text))).toBe(false);
    }
  });
});

describe("Bun's Platform", () => {
  const file = join(resolve(import.meta.dir, "../.."), "runtimes/bun/platform.ts");
  const script = (body: string) =>
    new RunningCommand(
      [
        process.execPath,
        "-e",
        `import { bunPlatform } from "${file}"; const platform = bunPlatform(); ${body}`,
      ],
      {},
    );

  test("keeps the process alive for a promise, and no longer, whether it resolves or rejects", async () => {
    for (const settle of ["resolve()", "reject(new Error('hush'))"]) {
      await using run = script(`
        const { promise, resolve, reject } = Promise.withResolvers();
        platform.keepAlive(promise);
        setTimeout(() => { console.log("still here"); ${settle}; }, 30).unref();
      `);
      expect(await run.ended()).toEqual({ code: 0, out: "still here\n", err: "" });
    }
  });

  test("a timer longer than the runtime's longest does not fire at once", async () => {
    await using run = script(`
      platform.setTimer(2 ** 31 + 5, () => { console.log("fired"); process.exit(1); });
      platform.setTimer(30, () => { console.log("end"); process.exit(0); });
    `);
    expect((await run.ended()).out).toBe("end\n");
  });

  test("a signal ends a process that took its wish back, and one that never had any", async () => {
    for (const wish of ["platform.onStop(() => {})();", ""]) {
      await using run = script(`${wish} setInterval(() => {}, 1_000); console.log("up");`);
      await run.outputs(/up/);
      run.signal("SIGTERM");
      expect((await run.exited()).code).toBe(143);
    }
  });
});
