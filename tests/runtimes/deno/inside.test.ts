/**
 * What runs inside Deno, case by case: the conformance suite of each broker, with the same cases and counts as on Bun, and the
 * Platform's. The servers are started here.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cases } from "../../conformance/cases.ts";
import {
  EXPECTED,
  memoryHarness,
  natsHarness,
  redisHarness,
  sqliteHarness,
} from "../../conformance/harnesses.ts";
import { PLATFORM_EXPECTED, platformCases } from "../../conformance/platform_cases.ts";
import { applies, type Harness } from "../../support/conformance.ts";
import { type RedisOverHttp, startRedisOverHttp } from "../../support/gateway.ts";
import { type NatsServer, startNats } from "../../support/nats_server.ts";
import { startPlatformServer } from "../../support/platform_server.ts";
import { passRedisTime } from "../../support/redis_clock.ts";
import { DenoTests } from "./process.ts";

/** Lets the whole run take long on a busy machine: results come in the order of Deno's run. */
const PATIENCE_MS = 60_000;

const never = () => Promise.reject(new Error("it runs inside Deno"));
const CELLS: readonly { readonly harness: Harness; readonly expected: number }[] = [
  { harness: memoryHarness, expected: EXPECTED.memory },
  {
    harness: sqliteHarness(() => {
      throw new Error("it runs inside Deno");
    }),
    expected: EXPECTED.sqlite,
  },
  { harness: redisHarness(never), expected: EXPECTED.redis },
  { harness: natsHarness(never), expected: EXPECTED.nats },
];

let redis: RedisOverHttp;
let nats: NatsServer;
let clock: Bun.Server<undefined>;
let platformServer: ReturnType<typeof startPlatformServer>;
let tests: DenoTests;

beforeAll(async () => {
  redis = await startRedisOverHttp();
  nats = await startNats();
  platformServer = startPlatformServer();
  clock = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      await passRedisTime(redis.server, Number(await request.text()));
      return new Response(null, { status: 204 });
    },
  });
  tests = new DenoTests({
    EDDY_TEST_ORIGIN: platformServer.origin,
    EDDY_TEST_NATS: nats.url,
    EDDY_TEST_REDIS: JSON.stringify({
      url: redis.gateway.url,
      token: redis.gateway.token,
      clock: clock.url.href,
    }),
  });
});
afterAll(async () => {
  await tests.stop();
  await clock.stop(true);
  await platformServer.stop();
  await nats.stop();
  await redis.stop();
});

for (const { harness, expected } of CELLS) {
  describe(`conformance on Deno: ${harness.name}`, () => {
    const names = [
      "declares what it has, and no more",
      ...cases.filter((one) => applies(one, harness)).map((one) => one.name),
      `exactly ${expected} of ${cases.length} cases ran`,
    ];
    for (const name of names) {
      test(name, () => tests.passed(`${harness.name} > ${name}`), PATIENCE_MS);
    }
  });
}

describe("platform on Deno", () => {
  for (const { name } of platformCases) {
    test(name, () => tests.passed(`platform > ${name}`), PATIENCE_MS);
  }
  const counted = `exactly ${PLATFORM_EXPECTED.deno} of ${platformCases.length} cases ran`;
  test(counted, () => tests.passed(`platform > ${counted}`), PATIENCE_MS);
});

test(
  "all else that Deno's run holds passes, and the run ends well",
  async () => {
    const { code, err } = await tests.ended();
    const failures = [...tests.results].filter(([, failure]) => failure !== undefined);
    expect(failures).toEqual([]);
    expect({ code, err: code === 0 ? "" : err }).toEqual({ code: 0, err: "" });
  },
  PATIENCE_MS,
);
