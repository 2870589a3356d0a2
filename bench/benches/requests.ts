/**
 * What a job costs in HTTP requests and in Redis commands. Counted, not timed: at the gateway, and by Redis itself.
 *
 * @module
 */
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import { defineWorker, type Job, PermanentError, queue, startWorker } from "../../src/mod.ts";
import { type RedisOverHttp, startRedisOverHttp } from "../../tests/support/gateway.ts";
import { atMost, type Bench } from "../support/bench.ts";
import { fill, openQueue } from "../support/brokers.ts";

const platform = bunPlatform();

type Body = { readonly n: number };

/** How the jobs end. Each fails its first attempt or not, or for good. */
const ENDS: Readonly<Record<string, (job: Job<Body>) => void>> = {
  "all acked": () => {},
  "all retried once": (job) => {
    if (job.attempt === 1) throw new Error("once");
  },
  "a tenth retried, a fiftieth dead": (job) => {
    const { n } = job.body;
    if (n % 50 === 7) throw new PermanentError("never");
    if (n % 10 === 3 && job.attempt === 1) throw new Error("once");
  },
};

interface Cost {
  readonly requests: number;
  /** What clients send; a script call is one. */
  readonly sent: number;
  /** With those that scripts run. */
  readonly commands: number;
}

async function commandsOf(redis: RedisOverHttp): Promise<number> {
  const text = String(await redis.server.command("INFO", "commandstats"));
  let sum = 0;
  for (const [, name, calls] of text.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)) {
    if (name !== "info" && name !== "config|resetstat") sum += Number(calls);
  }
  return sum;
}

async function costOf(
  redis: RedisOverHttp,
  jobs: number,
  batch: number,
  end: (job: Job<Body>) => void,
): Promise<Cost> {
  const name = `cost-${crypto.randomUUID()}`;
  const filling = redis.connect();
  await fill(await openQueue(filling, name), jobs);
  await filling.close();
  redis.gateway.resetCounts();
  await redis.server.command("CONFIG", "RESETSTAT");
  const broker = redis.connect();
  const done = Promise.withResolvers<void>();
  let left = jobs;
  const worker = await startWorker(
    defineWorker({
      queues: [
        queue<Body>(name).handle((job) => end(job as Job<Body>), {
          prefetch: batch,
          backoff: { baseMs: 0, maxMs: 0 },
        }),
      ],
    }),
    {
      broker,
      platform,
      on(event) {
        if (event.type !== "settled" || event.verdict === "retry") return;
        left -= 1;
        if (left === 0) done.resolve();
      },
    },
  );
  await done.promise;
  const { requests, commands: sent } = redis.gateway.counts;
  const commands = await commandsOf(redis);
  await worker.stop();
  await broker.close();
  return { requests: requests / jobs, sent: sent / jobs, commands: commands / jobs };
}

export const requests: Bench = {
  name: "requests",
  title: "HTTP requests and Redis commands a job",
  async run(context) {
    const jobs = context.pick(3_200, 1_600, 64);
    const redis = await startRedisOverHttp();
    try {
      for (const [ends, end] of Object.entries(ENDS)) {
        for (const batch of [1, 4, 16]) {
          context.progress(`${ends}, batch ${batch}`);
          const cost = await costOf(redis, jobs, batch, end);
          const barred = batch === 16 && ends === "all acked";
          context.row({
            case: `${ends}, batch ${batch}`,
            value: cost.requests,
            unit: "requests/job",
            ...(barred ? { bar: atMost(cost.requests, 0.07) } : {}),
          });
          context.row({
            case: `${ends}, batch ${batch}: Redis commands sent`,
            value: cost.sent,
            unit: "commands/job",
          });
          context.row({
            case: `${ends}, batch ${batch}: with those inside scripts`,
            value: cost.commands,
            unit: "commands/job",
          });
        }
      }
    } finally {
      await redis.stop();
    }
    context.note(
      "One slot. Counted from the worker's start, opening the queue and its subscription included. A job that is retried is delivered twice.",
    );
  },
};
