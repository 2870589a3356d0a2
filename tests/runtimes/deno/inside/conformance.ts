/**
 * The conformance suite on Deno: the same cases as on Bun, registered as Deno tests. Memory and SQLite always; an engine that is a
 * server when its address comes in the environment, so whoever starts the servers decides which of them run here.
 *
 * @module
 */
import { NatsBroker } from "../../../../adapters/nats/mod.ts";
import { RedisBroker } from "../../../../adapters/redis/mod.ts";
import { nodeSqlite } from "../../../../adapters/sqlite/node_driver.ts";
import { denoPlatform } from "../../../../runtimes/deno/mod.ts";
import { cases } from "../../../conformance/cases.ts";
import {
  EXPECTED,
  memoryHarness,
  natsHarness,
  redisHarness,
  sqliteHarness,
} from "../../../conformance/harnesses.ts";
import {
  applies,
  type ConformanceCase,
  checkDeclared,
  type EngineUnderTest,
  type Harness,
  runCase,
} from "../../../support/conformance.ts";
import { same } from "../../../support/conformance_assert.ts";

interface CellOptions {
  /** Whether nothing may be under way any more when a case ends. A connection that was told to close may take its time. */
  readonly leavesNothing: boolean;
  /** How many cases run at a time. More than one where most of their time is spent waiting for a real clock. */
  readonly atOnce: number;
}

function conformance(harness: Harness, expected: number, { leavesNothing, atOnce }: CellOptions): void {
  const sanitize = { sanitizeOps: leavesNothing, sanitizeResources: leavesNothing };
  let started: Promise<EngineUnderTest> | undefined;
  const engine = () => {
    started ??= harness.start();
    return started;
  };
  const own = cases.filter((each) => applies(each, harness));
  let ran = 0;
  const run = async (one: ConformanceCase) => {
    await runCase(one, harness, await engine());
    ran += 1;
  };
  const outcomes = new Map(own.map((one) => [one, Promise.withResolvers<void>()]));
  const runAhead = async (rest: Iterator<ConformanceCase>) => {
    for (let next = rest.next(); next.done !== true; next = rest.next()) {
      const outcome = outcomes.get(next.value);
      // Whoever waits for it is told; nobody does yet.
      outcome?.promise.catch(() => {});
      await run(next.value).then(outcome?.resolve, outcome?.reject);
    }
  };
  Deno.test(`${harness.name} > declares what it has, and no more`, sanitize, async () => {
    const broker = (await engine()).connect();
    checkDeclared(cases, harness, broker);
    await broker.close();
    const rest = own.values();
    if (atOnce > 1) for (let i = 0; i < atOnce; i += 1) void runAhead(rest);
  });
  for (const one of own) {
    Deno.test(`${harness.name} > ${one.name}`, sanitize, async () => {
      await (atOnce > 1 ? outcomes.get(one)?.promise : run(one));
    });
  }
  Deno.test(`${harness.name} > exactly ${expected} of ${cases.length} cases ran`, sanitize, async () => {
    await (await engine()).stop();
    same(ran, expected, "cases that ran");
  });
}

conformance(memoryHarness, EXPECTED.memory, { leavesNothing: true, atOnce: 1 });
conformance(
  sqliteHarness((file) => nodeSqlite({ file, synchronous: "normal" })),
  EXPECTED.sqlite,
  { leavesNothing: true, atOnce: 1 },
);

/** A Redis over HTTP that the starter of this process runs, and the address that lets time pass on it. */
const redis = Deno.env.get("EDDY_TEST_REDIS");
if (redis !== undefined) {
  const { url, token, clock } = JSON.parse(redis) as { url: string; token: string; clock: string };
  conformance(
    redisHarness(async () => ({
      connect: () => new RedisBroker({ url, token }),
      async passMs(ms) {
        const response = await fetch(clock, { method: "POST", body: String(ms) });
        same(response.status, 204, "the clock's answer");
      },
      async stop() {},
    })),
    EXPECTED.redis,
    { leavesNothing: false, atOnce: 1 },
  );
}

/** The WebSocket listener of a NATS server. */
const nats = Deno.env.get("EDDY_TEST_NATS");
if (nats !== undefined) {
  const { openWebSocket } = denoPlatform();
  conformance(
    natsHarness(async () => ({
      connect: () => new NatsBroker({ url: nats, openWebSocket }),
      passMs: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      async stop() {},
    })),
    EXPECTED.nats,
    { leavesNothing: false, atOnce: 4 },
  );
}
