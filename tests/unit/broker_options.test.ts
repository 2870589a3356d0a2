/** What a program without types reads when it constructs a broker from options that are missing or of the wrong kind. */
import { describe, expect, test } from "bun:test";
import { nkeys } from "nats.ws";
import { MemoryBroker } from "../../adapters/memory.ts";
import { NatsBroker } from "../../adapters/nats/mod.ts";
import { RedisBroker } from "../../adapters/redis/mod.ts";
import { bunSqlite } from "../../adapters/sqlite/bun_driver.ts";
import { SqliteBroker } from "../../adapters/sqlite/mod.ts";
import type { Broker } from "../../src/broker.ts";

const MAKE: Readonly<Record<string, (options: unknown) => unknown>> = {
  memory: (options) => new MemoryBroker(options as never),
  sqlite: (options) => new SqliteBroker(options as never),
  "sqlite's file": (options) => bunSqlite(options as never),
  redis: (options) => new RedisBroker(options as never),
  nats: (options) => new NatsBroker(options as never),
};

const REDIS = { url: "https://host", token: "t" };
const NATS = { url: "wss://host" };
const now = () => 0;

const seedOf = (pair: { getSeed(): Uint8Array }) => new TextDecoder().decode(pair.getSeed());
const SEED = seedOf(nkeys.createUser());
/** One letter is another. */
const MISTYPED = `${SEED.slice(0, 20)}${SEED[20] === "A" ? "B" : "A"}${SEED.slice(21)}`;
const ACCOUNT = seedOf(nkeys.createAccount());
const JWT = "eyJ0eXAiOiJKV1QifQ.e30.c2ln";

/** The text of a credentials file. */
function fileOf(jwt: string, seed: string): string {
  return `-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------\n\n*** IMPORTANT ***\n\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`;
}

/** Broker, options, and what the error says. */
const CASES: readonly (readonly [string, unknown, string])[] = [
  ["memory", {}, "now is undefined; give a function, as in () => performance.now()"],
  ["memory", { now: 5 }, "now is number"],
  ["memory", { now, wallNow: 5 }, "wallNow is number"],
  [
    "sqlite",
    { file: "jobs.db" },
    'database is missing; give bunSqlite({ file }) from "eddy/adapters/sqlite/bun" or nodeSqlite({ file }) from "eddy/adapters/sqlite/node"',
  ],
  ["sqlite", { database: "jobs.db" }, "database is no driver's; give bunSqlite({ file })"],
  ["sqlite", { database: null }, "database is no driver's; give bunSqlite({ file })"],
  ["sqlite", { database: bunSqlite({ file: "jobs.db" }), wallNow: 5 }, "wallNow is number"],
  ["sqlite's file", {}, "file is missing; it must be the path of a file"],
  ["sqlite's file", { file: 5 }, "file is 5; it must be the path of a file"],
  ["sqlite's file", { file: "a\0b" }, "it must be the path of a file"],
  ["redis", {}, "url is missing; give the REST address as a text, as in https://host"],
  ["redis", { url: 5, token: "t" }, "url is a number; give"],
  [
    "redis",
    { url: new URL("https://host"), token: "t" },
    "url is an object; give the REST address as a text",
  ],
  ["redis", { url: "redis://host", token: "t" }, "url is no http(s) address"],
  ["redis", { url: "https://host" }, "token is missing; give the REST token"],
  ["redis", { url: "https://host", token: 5 }, "token is a number"],
  ["redis", { url: "https://host", token: "" }, "token is empty"],
  ["redis", { url: "https://host", token: "hush " }, "token has spaces or unprintable characters"],
  ["redis", { ...REDIS, prefix: 5 }, 'prefix is "5"'],
  ["redis", { ...REDIS, onWarning: "x" }, "onWarning is string"],
  ["nats", {}, "url is missing"],
  [
    "nats",
    { url: 5 },
    "url is a number; give the address of a WebSocket listener as a text, as in wss://host",
  ],
  [
    "nats",
    { url: new URL("wss://host") },
    "url is an object; give the address of a WebSocket listener as a text",
  ],
  ["nats", { url: [] }, "url is an empty array; give"],
  ["nats", { url: ["wss://host", 5] }, "one of url is a number; give"],
  ["nats", { url: "wss://host/#hush" }, "url has a fragment (#…), which no WebSocket's address may have"],
  ["nats", { url: "https://host" }, "url is no ws:// or wss:// address"],
  ["nats", { ...NATS, tokn: "hush" }, "tokn is no option; use some of url, token, user, password, nkeySeed,"],
  ["nats", { ...NATS, user: "ada", pass: "hush" }, "pass is no option; use some of"],
  ["nats", { ...NATS, reconnect: true }, "reconnect is no option; use some of"],
  ["nats", { ...NATS, now: 5 }, "now is number; give a function, as in () => performance.now()"],
  ["nats", { ...NATS, random: 5 }, "random is number; give a function, as in () => Math.random()"],
  ["nats", { ...NATS, sources: 5 }, "sources is a number; give an object from queues to sources"],
  [
    "nats",
    { ...NATS, sources: { work: { stream: "S", consumer: "C", maxDeliver: 5 } } },
    "sources.work.maxDeliver is no option; use some of stream, consumer",
  ],
  ["redis", { ...REDIS, retries: 5 }, "retries is no option; use some of url, token,"],
  ["memory", { now, random: now }, "random is no option; use some of now, wallNow"],
  [
    "sqlite",
    { database: bunSqlite({ file: "jobs.db" }), busyTimeoutMs: 5 },
    "busyTimeoutMs is no option; use some of database, wallNow",
  ],
  [
    "sqlite's file",
    { file: "jobs.db", readonly: true },
    "readonly is no option; use some of file, synchronous,",
  ],
  ["nats", { ...NATS, prefix: 5 }, "prefix is faulty"],
  ["nats", { ...NATS, sources: { work: null } }, "sources.work names no stream and consumer"],
  ["nats", { ...NATS, sources: { work: { stream: "S" } } }, "sources.work names no stream and consumer"],
  ["nats", { ...NATS, token: "hush\n" }, "token begins or ends with white space; take that away"],
  ["nats", { ...NATS, user: "ada", password: "hush " }, "password begins or ends with white space"],
  ["nats", { ...NATS, nkeySeed: `${SEED}\n` }, "nkeySeed begins or ends with white space"],
  ["nats", { ...NATS, token: 5 }, "token is a number; give it as a text, or leave it out"],
  ["nats", { ...NATS, user: "ada", password: null }, "password is null; give it as a text"],
  ["nats", { ...NATS, credentials: "" }, "credentials is empty; give it, or leave it out"],
  [
    "nats",
    { ...NATS, credentials: "hush" },
    "credentials is no credentials file's text (no JWT and seed in it); give what the file holds, not its path",
  ],
  ["nats", { ...NATS, credentials: fileOf("hush", SEED) }, "credentials is no credentials file's text"],
  ["nats", { ...NATS, credentials: fileOf(JWT, "hush") }, "credentials is no credentials file's text"],
  ["nats", { ...NATS, nkeySeed: "hush" }, "nkeySeed is no seed of a user's nkey; give the text that begins"],
  ["nats", { ...NATS, nkeySeed: MISTYPED }, "nkeySeed is no seed of a user's nkey"],
  ["nats", { ...NATS, nkeySeed: ACCOUNT }, "nkeySeed is no seed of a user's nkey"],
  ["nats", { ...NATS, openWebSocket: "x" }, "openWebSocket is string"],
];

const LONGEST_MS = 2_147_483_647;
/** Broker, field and unit of what a timer is set to: one set to more fires at once. */
const TIMERS: readonly (readonly [string, object, string])[] = [
  ["redis", REDIS, "watchSilenceMs"],
  ["nats", NATS, "connectTimeoutMs"],
  ["nats", NATS, "pingEveryMs"],
  ["nats", NATS, "pongWithinMs"],
  ["nats", NATS, "reconnectMaxMs"],
];

/** Broker, options, and what the error says of a number that is none, or out of range. */
const NUMBERS: readonly (readonly [string, object, typeof TypeError | typeof RangeError, string])[] = [
  ["sqlite's file", { file: "a", busyTimeoutMs: "5" }, TypeError, "busyTimeoutMs is a string; give a whole"],
  ["sqlite's file", { file: "a", busyTimeoutMs: 0.5 }, RangeError, "busyTimeoutMs is 0.5; give a whole"],
  [
    "redis",
    { ...REDIS, maxBodyBytes: "5" },
    TypeError,
    "maxBodyBytes is a string; give a whole number from 1",
  ],
  ["redis", { ...REDIS, verifyEveryMs: 0 }, RangeError, "verifyEveryMs is 0; give a whole number from 1 on"],
  [
    "nats",
    { ...NATS, connectTimeoutMs: "5" },
    TypeError,
    "connectTimeoutMs is a string; give a whole number",
  ],
  ["nats", { ...NATS, replicas: 6 }, RangeError, "replicas is 6; give a whole number from 1 to 5"],
];

function errorOf(broker: string, options: unknown): unknown {
  try {
    MAKE[broker]?.(options);
  } catch (error) {
    return error;
  }
  return undefined;
}

describe("options that no broker can use", () => {
  for (const broker of Object.keys(MAKE)) {
    for (const [options, found] of [
      [undefined, "undefined"],
      [null, "null"],
      ["jobs", "string"],
    ] as const) {
      test(`${broker}: ${found}`, () => {
        const error = errorOf(broker, options);
        expect(error).toBeInstanceOf(TypeError);
        expect((error as Error).message).toMatch(/^Cannot use [a-zA-Z ]+: options is /);
        expect((error as Error).message).toContain(`options is ${found}; give an object, as in {`);
      });
    }
  }

  for (const [broker, options, words] of CASES) {
    test(`${broker}: ${words}`, () => {
      const error = errorOf(broker, options);
      expect(error).toBeInstanceOf(TypeError);
      expect((error as Error).message).toStartWith("Cannot use ");
      expect((error as Error).message).toContain(words);
      for (const secret of ["hush", SEED, MISTYPED, ACCOUNT])
        expect((error as Error).message).not.toContain(secret);
    });
  }

  test("nats: logins that can be used", () => {
    const file = fileOf(JWT, SEED);
    for (const login of [
      { credentials: file },
      { credentials: file.replaceAll("\n", "\r\n") },
      { nkeySeed: SEED },
      { user: "ada", password: "" },
      { token: undefined },
    ]) {
      expect(errorOf("nats", { ...NATS, ...login })).toBeUndefined();
    }
  });

  for (const [broker, options, kind, words] of NUMBERS) {
    test(`${broker}: ${words}`, () => {
      const error = errorOf(broker, options);
      expect(error).toBeInstanceOf(kind);
      expect((error as Error).message).toContain(words);
    });
  }

  test.each(TIMERS)("%s %o: %s above what a timer can be set to", (broker, options, field) => {
    const error = errorOf(broker, { ...options, [field]: LONGEST_MS + 1 });
    expect(error).toBeInstanceOf(RangeError);
    expect((error as Error).message).toEndWith(
      `${field} is ${LONGEST_MS + 1}; give a whole number from 1 to ${LONGEST_MS}`,
    );
    expect(errorOf(broker, { ...options, [field]: LONGEST_MS })).toBeUndefined();
  });

  test.each(["memory", "sqlite", "redis", "nats"])("%s: a queue's times", (name) => {
    const options = {
      memory: { now },
      sqlite: { database: bunSqlite({ file: "a" }) },
      redis: REDIS,
      nats: NATS,
    };
    const broker = MAKE[name]?.(options[name as "memory"]) as Broker;
    const settings = { leaseMs: 30_000, requestTimeoutMs: 5_000, dedupeWindowMs: 60_000 };
    expect(() => broker.queue("q", { ...settings, requestTimeoutMs: LONGEST_MS + 1 })).toThrow(
      `requestTimeoutMs is ${LONGEST_MS + 1}; it must be at most ${LONGEST_MS}`,
    );
    expect(() => broker.queue("q", { ...settings, leaseMs: "5" as unknown as number })).toThrow(
      "leaseMs is a string; it must be",
    );
    broker.queue("q", { ...settings, requestTimeoutMs: LONGEST_MS, leaseMs: LONGEST_MS + 1 });
  });
});
