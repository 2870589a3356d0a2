/**
 * How each adapter is put through the suite, whatever runtime it runs on, and how many cases must run. No test library and no
 * runtime of its own is imported here.
 *
 * @module
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MemoryBroker } from "../../adapters/memory.ts";
import { SqliteBroker, type SqlSource } from "../../adapters/sqlite/mod.ts";
import type { EngineUnderTest, Harness } from "../support/conformance.ts";

/** How many cases run for an adapter, on every runtime. */
export const EXPECTED = { memory: 162, sqlite: 162, redis: 162, nats: 136 } as const;

/** The memory broker on a clock that the suite moves. */
export const memoryHarness: Harness = {
  name: "memory",
  lacks: { waits: "its claims answer at once" },
  shortMs: 1000,
  async start() {
    let nowMs = 0;
    const engine = new MemoryBroker({ now: () => nowMs, wallNow: () => 1_700_000_000_000 + nowMs });
    return {
      connect: () => engine.connect(),
      async passMs(ms) {
        nowMs += ms;
      },
      async stop() {},
    };
  },
};

/** The SQLite broker on a file that is thrown away, its clock moved by the suite. */
export function sqliteHarness(open: (file: string) => SqlSource): Harness {
  return {
    name: "sqlite",
    lacks: { waits: "its claims answer at once" },
    shortMs: 1000,
    async start() {
      const folder = mkdtempSync(join(tmpdir(), "eddy-conformance-"));
      let nowMs = 1_700_000_000_000;
      const database = open(join(folder, "jobs.db"));
      return {
        connect: () => new SqliteBroker({ database, wallNow: () => nowMs }),
        async passMs(ms) {
          nowMs += ms;
        },
        async stop() {
          rmSync(folder, { recursive: true });
        },
      };
    },
  };
}

/** The Redis broker on a real Redis. Its clock is real, but deadlines are moved, not awaited. */
export function redisHarness(start: () => Promise<EngineUnderTest>): Harness {
  return {
    name: "redis",
    lacks: { waits: "a request over HTTP is answered at once" },
    shortMs: 10_000,
    start,
  };
}

/** The NATS broker on a real nats-server. */
export function natsHarness(start: () => Promise<EngineUnderTest>): Harness {
  return {
    name: "nats",
    lacks: {
      exchange: "JetStream has no request that settles and hands out at once",
      wake: "its claims wait",
      memo: "a memo travels with exchanges",
      fenced: "JetStream knows deliveries, not leases, and takes any ack of them",
      atomic: "JetStream takes messages in one by one",
      simulatedTime: "a real server's clock cannot be moved",
    },
    shortMs: 1000,
    start,
  };
}
