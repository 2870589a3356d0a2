/** A Redis whose memory is full: it refuses new jobs in words, keeps every one that it took, and can still be emptied. */
import { expect, test } from "bun:test";
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import {
  BrokerError,
  BrokerRefusedError,
  defineWorker,
  Producer,
  queue,
  startWorker,
} from "../../src/mod.ts";
import { startRedisOverHttp } from "../support/gateway.ts";

const BODY = "hush-body".repeat(200);
/** What a request asks for at most: far less than the memory. */
const BATCH = 20;

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`Waited 20 s in vain until ${what}`);
    await Bun.sleep(10);
  }
}

test("jobs are refused while it is full; what it took is finished, and then it takes more", async () => {
  const redis = await startRedisOverHttp();
  const platform = bunPlatform();
  const broker = redis.connect();
  const work = queue<string>("full");
  const producer = new Producer({ broker, platform });
  const put = async (from: number): Promise<string[]> => {
    const jobs = Array.from({ length: BATCH }, (_, n) => ({ id: `job-${from + n}`, body: BODY }));
    return (await producer.enqueueMany(work, jobs)).map(({ id }) => id);
  };
  const ended: string[] = [];
  const errors: string[] = [];
  try {
    const accepted = await put(0);
    const used = /used_memory:(\d+)/.exec(String(await redis.server.command("INFO", "memory")))?.[1];
    await redis.server.command("CONFIG", "SET", "maxmemory", String(Number(used) + 2_000_000));
    let refused: unknown;
    for (let from = BATCH; refused === undefined; from += BATCH) {
      expect(from).toBeLessThan(10_000);
      await put(from).then(
        (ids) => accepted.push(...ids),
        (error: unknown) => {
          refused = error;
        },
      );
    }
    expect(accepted.length).toBeGreaterThan(500);
    expect((refused as Error).message).toContain("OOM command not allowed when used memory > 'maxmemory'");
    expect(refused).not.toBeInstanceOf(BrokerRefusedError);
    expect((refused as Error).cause).toBeInstanceOf(BrokerError);
    expect(Bun.inspect(refused)).not.toContain("hush-body");

    // Now all of it is too much, whatever is finished.
    await redis.server.command("CONFIG", "SET", "maxmemory", "1");
    const worker = await startWorker(
      defineWorker({
        queues: [
          work.handle(
            (job) => {
              const n = Number(job.id.slice("job-".length));
              // Whatever becomes of a job has to be written, too.
              if (n % 10 === 1 && job.attempt === 1) return job.retry({ delayMs: 1 });
              if (n % 10 === 2 && job.attempt === 1) throw new Error("again");
              ended.push(job.id);
              if (n % 10 === 3) job.deadLetter("told to");
            },
            { leaseMs: 10_000, prefetch: 16, concurrency: 4, backoff: () => 0 },
          ),
        ],
      }),
      {
        broker,
        platform,
        on: (event) => {
          if (event.type === "brokerError" || event.type === "refused") errors.push(event.error.message);
        },
      },
    );
    const asked = broker.queue("full", { leaseMs: 10_000, requestTimeoutMs: 2_000, dedupeWindowMs: 60_000 });
    await asked.open();
    await until("all that it took is settled", async () => {
      const sizes = await asked.sizes?.();
      return sizes !== undefined && sizes.ready + sizes.delayed + sizes.held === 0;
    });
    expect(ended.toSorted()).toEqual(accepted.toSorted());
    await redis.server.command("CONFIG", "SET", "maxmemory", "0");
    const more = await put(20_000);
    await until("the new ones are run", () => ended.length === accepted.length + more.length);
    expect((await asked.sizes?.())?.dead).toBe((accepted.length + more.length) / 10);
    expect(errors).toEqual([]);
    await worker.stop();
  } finally {
    if (errors.length > 0) console.log(errors.slice(0, 3));
    await broker.close();
    await redis.stop();
  }
}, 60_000);
