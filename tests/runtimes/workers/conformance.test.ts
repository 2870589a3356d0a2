/** The broker port's cases inside workerd: memory, SQLite in a Durable Object, that object from outside, Redis over HTTP, and NATS over WebSocket. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import { cases } from "../../conformance/cases.ts";
import { EXPECTED } from "../../conformance/harnesses.ts";
import { applies } from "../../support/conformance.ts";
import { type RedisOverHttp, startRedisOverHttp } from "../../support/gateway.ts";
import { type NatsServer, startNats } from "../../support/nats_server.ts";
import { Workerd } from "../../support/workerd.ts";
import { type CaseResult, CELLS, type CellName } from "./cells.ts";

/** How many cases each cell must run: one that went missing fails. */
const COUNTS: Record<CellName, number> = {
  memory: EXPECTED.memory,
  "object's sqlite": EXPECTED.sqlite,
  // Without the seven of `wake` and the one that needs a clock which can be moved.
  "durable object": EXPECTED.sqlite - 8,
  // Without the one that needs a clock which can be moved.
  redis: EXPECTED.redis - 1,
  nats: EXPECTED.nats,
};
const CELL_TIMEOUT_MS = 180_000;

let redis: RedisOverHttp;
let nats: NatsServer;
let workerd: Workerd;
/** The cells run side by side: most of their time is spent waiting for leases to run out. */
const running = new Map<string, Promise<CaseResult[]>>();

beforeAll(async () => {
  [redis, nats] = await Promise.all([startRedisOverHttp(), startNats()]);
  workerd = await Workerd.start({
    entry: resolve(import.meta.dir, "conformance_worker.ts"),
    bindings: { REDIS_URL: redis.gateway.url, REDIS_TOKEN: redis.gateway.token, NATS_URL: nats.url },
    objects: { QUEUES: "Queues", INSIDE: "Inside" },
  });
  for (const name of Object.keys(CELLS)) {
    const run = workerd.json<CaseResult[]>(`/run?cell=${encodeURIComponent(name)}`, { method: "POST" });
    // It is looked at by the cell's own tests.
    run.catch(() => {});
    running.set(name, run);
  }
}, CELL_TIMEOUT_MS);

afterAll(async () => {
  await workerd?.stop();
  await redis?.stop();
  await nats?.stop();
});

for (const [name, cell] of Object.entries(CELLS)) {
  describe(`conformance in workerd: ${name}`, () => {
    let results: ReadonlyMap<string, CaseResult> = new Map();

    beforeAll(async () => {
      const answers = await running.get(name);
      results = new Map(answers?.map((one) => [one.name, one]));
    }, CELL_TIMEOUT_MS);

    const expected = [
      "declares what it has, and no more",
      ...cases.filter((one) => applies(one, { ...cell, start: neverStarted })).map((one) => one.name),
    ];
    for (const one of expected) {
      test(one, () => {
        expect(results.get(one)).toEqual({ name: one, error: null });
      });
    }

    test(`exactly ${COUNTS[name as CellName]} of ${cases.length} cases ran`, () => {
      expect(results.size - 1).toBe(COUNTS[name as CellName]);
    });
  });
}

function neverStarted(): never {
  throw new Error("Cells run in workerd");
}
