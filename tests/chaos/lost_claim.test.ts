/** A claim's reply that is lost after the claim took effect costs no lease wait: the worker asks again under the same lease, and has the same jobs. */
import { expect, test } from "bun:test";
import { RedisBroker } from "../../adapters/redis/mod.ts";
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import { defineWorker, Producer, queue, startWorker } from "../../src/mod.ts";
import { startRedisOverHttp } from "../support/gateway.ts";
import { type HttpFault, HttpProxy, PASS } from "../support/http_proxy.ts";

const LEASE_MS = 30_000;
const JOBS = 4;

const FAULTS: readonly HttpFault[] = [{ kind: "loseReply" }, { kind: "truncate" }, { kind: "stall" }];

for (const fault of FAULTS) {
  test(`redis: the jobs of a claim whose reply met "${fault.kind}" start long before the lease ends`, async () => {
    const redis = await startRedisOverHttp();
    const proxy = await HttpProxy.start(redis.gateway.url);
    const platform = bunPlatform();
    const direct = redis.connect();
    const broker = new RedisBroker({ url: proxy.url, token: redis.gateway.token, onWarning: () => {} });
    const work = queue<null>("lost");
    const started: { id: string; attempt: number; suspect: boolean }[] = [];
    const worker = await startWorker(
      defineWorker({
        queues: [
          work.handle(
            ({ id, attempt, suspect }) => {
              started.push({ id, attempt, suspect });
            },
            { leaseMs: LEASE_MS, requestTimeoutMs: 500, prefetch: JOBS, concurrency: JOBS },
          ),
        ],
      }),
      { broker, platform },
    );
    try {
      // Until one was answered the engine may not know the claim's script, and a claim that is answered by that, unheard, takes no effect.
      await until("a first claim is answered", async () => worker.stats()[0]?.roundTripMs !== undefined);
      // Whatever is asked from here on takes effect, and is not answered.
      proxy.script = () => fault;
      const producer = new Producer({ broker: direct, platform });
      const jobs = await producer.enqueueMany(
        work,
        Array.from({ length: JOBS }, () => ({ body: null })),
      );
      const asked = direct.queue("lost", {
        leaseMs: LEASE_MS,
        requestTimeoutMs: 5_000,
        dedupeWindowMs: 60_000,
      });
      await asked.open();
      await until("the claim takes effect", async () => (await asked.sizes?.())?.held === JOBS);
      expect(started).toEqual([]);
      proxy.script = () => PASS;
      const from = performance.now();
      await until("all jobs start", async () => started.length === JOBS, 5_000);
      console.log(`${fault.kind}: started ${Math.round(performance.now() - from)} ms after the faults' end`);
      const expected = jobs.map(({ id }) => ({ id, attempt: 1, suspect: false }));
      expect(started.toSorted(byId)).toEqual(expected.toSorted(byId));
    } finally {
      await worker.stop();
      await Promise.all([broker.close(), direct.close()]);
      await proxy.stop();
      await redis.stop();
    }
  }, 40_000);
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id < b.id ? -1 : 1;
}

async function until(what: string, holds: () => Promise<boolean>, withinMs = 20_000): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`Waited ${withinMs} ms in vain until ${what}`);
    await Bun.sleep(5);
  }
}
