/** What a program without types reads when it constructs a broker from options that are missing or of the wrong kind. */
import { describe, expect, test } from "bun:test";
import { MemoryBroker } from "../../adapters/memory.ts";
import { NatsBroker } from "../../adapters/nats/mod.ts";
import { RedisBroker } from "../../adapters/redis/mod.ts";
import { bunSqlite } from "../../adapters/sqlite/bun_driver.ts";
import { SqliteBroker } from "../../adapters/sqlite/mod.ts";

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
  ["redis", {}, "url is no http(s) address"],
  ["redis", { url: 5, token: "t" }, "url is no http(s) address"],
  ["redis", { url: new URL("https://host"), token: "t" }, "url is no http(s) address"],
  ["redis", { url: "https://host" }, "token is missing"],
  ["redis", { ...REDIS, prefix: 5 }, 'prefix is "5"'],
  ["redis", { ...REDIS, onWarning: "x" }, "onWarning is string"],
  ["nats", {}, "url is missing"],
  ["nats", { url: 5 }, "url is missing"],
  ["nats", { url: [5] }, "url is no ws:// or wss:// address"],
  ["nats", { ...NATS, prefix: 5 }, "prefix is faulty"],
  ["nats", { ...NATS, sources: { work: null } }, "sources.work names no stream and consumer"],
  ["nats", { ...NATS, sources: { work: { stream: "S" } } }, "sources.work names no stream and consumer"],
  ["nats", { ...NATS, openWebSocket: "x" }, "openWebSocket is string"],
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
    });
  }
});
