/**
 * The conformance suite on Deno: the same cases as on Bun, registered as Deno tests. Memory and SQLite always; an engine that is a
 * server when its address comes in the environment, so whoever starts the servers decides which of them run here.
 *
 * @module
 */
import { RedisBroker } from "../../../../adapters/redis/mod.ts";
import { nodeSqlite } from "../../../../adapters/sqlite/node_driver.ts";
import { cases } from "../../../conformance/cases.ts";
import { EXPECTED, memoryHarness, redisHarness, sqliteHarness } from "../../../conformance/harnesses.ts";
import {
  applies,
  checkDeclared,
  type EngineUnderTest,
  type Harness,
  runCase,
} from "../../../support/conformance.ts";
import { same } from "../../../support/conformance_assert.ts";

/**
 * @param leavesNothing whether nothing may be under way any more when a case ends. A connection that was told to close may take
 * its time.
 */
function conformance(harness: Harness, expected: number, leavesNothing: boolean): void {
  const sanitize = { sanitizeOps: leavesNothing, sanitizeResources: leavesNothing };
  let started: Promise<EngineUnderTest> | undefined;
  const engine = () => {
    started ??= harness.start();
    return started;
  };
  let ran = 0;
  Deno.test(`${harness.name} > declares what it has, and no more`, sanitize, async () => {
    const broker = (await engine()).connect();
    checkDeclared(cases, harness, broker);
    await broker.close();
  });
  for (const one of cases.filter((each) => applies(each, harness))) {
    Deno.test(`${harness.name} > ${one.name}`, sanitize, async () => {
      await runCase(one, harness, await engine());
      ran += 1;
    });
  }
  Deno.test(`${harness.name} > exactly ${expected} of ${cases.length} cases ran`, sanitize, async () => {
    await (await engine()).stop();
    same(ran, expected, "cases that ran");
  });
}

conformance(memoryHarness, EXPECTED.memory, true);
conformance(
  sqliteHarness((file) => nodeSqlite({ file, synchronous: "normal" })),
  EXPECTED.sqlite,
  true,
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
    false,
  );
}
