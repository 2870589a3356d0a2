/**
 * Whether a claim's cost depends on what else is in the queue.
 *
 * @module
 */
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import type { BrokerQueue, Delivery } from "../../src/mod.ts";
import { atMost, type Bench, type Context } from "../support/bench.ts";
import { fill, openBroker, openQueue } from "../support/brokers.ts";
import { median } from "../support/figures.ts";
import { type RedisHttp, Scratch, startRedisHttp } from "../support/servers.ts";

const BATCH = 16;
const MOST = 1.5;

interface Depth {
  readonly name: string;
  readonly ready: number;
  readonly delayed?: number;
  readonly dead?: number;
  /** Whether the bar holds for it. */
  readonly barred?: boolean;
}

/** A queue, and what its batches cost. */
interface Subject {
  readonly depth: Depth;
  readonly queue: BrokerQueue;
  readonly times: number[];
  /** What the engine itself says one took. */
  readonly engineTimes: number[];
}

function depths(context: Context): Depth[] {
  const scale = context.pick(1, 0.1, 0.001);
  const few = context.pick(1_000, 1_000, 64);
  const some = (count: number) => Math.max(few, Math.round(count * scale));
  return [
    { name: `${few.toLocaleString("en-US")} waiting`, ready: few },
    { name: `${some(100_000).toLocaleString("en-US")} waiting`, ready: some(100_000) },
    { name: `${some(1_000_000).toLocaleString("en-US")} waiting`, ready: some(1_000_000), barred: true },
    { name: `${some(100_000).toLocaleString("en-US")} delayed`, ready: few, delayed: some(100_000) },
    { name: `${some(10_000).toLocaleString("en-US")} dead`, ready: few, dead: some(10_000) },
  ];
}

async function prepare(queue: BrokerQueue, depth: Depth): Promise<void> {
  const { ready, delayed = 0, dead = 0 } = depth;
  await fill(queue, dead);
  for (let left = dead; left > 0; ) {
    const { deliveries } = await queue.claim({
      leaseId: crypto.randomUUID(),
      max: Math.min(1000, left),
      waitMs: 0,
    });
    await queue.settle(
      deliveries.map((delivery) => ({ delivery, verdict: { kind: "dead", error: "for the bench" } })),
    );
    left -= deliveries.length;
  }
  await fill(queue, delayed, { delayMs: 3_600_000 });
  await fill(queue, ready);
}

/** Acks a batch and claims the next, again and again. Answers what each took, in microseconds; the last batch is acked too. */
async function exchanges(queue: BrokerQueue, count: number): Promise<number[]> {
  const times: number[] = [];
  let held: readonly Delivery[] = [];
  for (let n = 0; n <= count; n++) {
    const settle = held.map((delivery) => ({ delivery, verdict: { kind: "ack" } as const }));
    const claim = { leaseId: crypto.randomUUID(), max: BATCH, waitMs: 0 };
    const from = performance.now();
    const reply = await queue.exchange?.({ settle, renew: [], ...(n < count ? { claim } : {}) });
    // The first has nothing to ack, the last nothing to claim.
    if (n > 0 && n < count) times.push((performance.now() - from) * 1000);
    held = reply?.claimed?.deliveries ?? [];
    if (n < count && held.length < BATCH)
      throw new Error(`Cannot go on: a claim brought ${held.length} of ${BATCH}`);
  }
  return times;
}

async function measure(
  context: Context,
  subjects: readonly Subject[],
  redis: RedisHttp | undefined,
): Promise<void> {
  // As many batches in a row as half of the smallest queue holds; then it is filled up again.
  const inARow = Math.max(2, Math.floor((subjects[0] as Subject).depth.ready / 2 / BATCH));
  const blocks = context.pick(12, 6, 1);
  for (let block = 0; block <= blocks; block++) {
    for (const { queue, times, engineTimes } of subjects) {
      await redis?.server.command("CONFIG", "RESETSTAT");
      const took = await exchanges(queue, inARow);
      const text = redis === undefined ? "" : String(await redis.server.command("INFO", "commandstats"));
      const engineUs = Number(/cmdstat_evalsha:.*usec_per_call=([\d.]+)/.exec(text)?.[1] ?? Number.NaN);
      // The first block warms up.
      if (block > 0) {
        times.push(...took);
        engineTimes.push(engineUs);
      }
      await fill(queue, inARow * BATCH);
    }
  }
}

function report(context: Context, engine: string, subjects: readonly Subject[]): void {
  const ofEngine = engine === "redis";
  const cost = (subject: Subject) => median(ofEngine ? subject.engineTimes : subject.times);
  const least = subjects[0] as Subject;
  for (const subject of subjects) {
    const value = cost(subject);
    const ratio = value / cost(least);
    context.row({
      case: `${engine}, ${subject.depth.name}${ofEngine ? ", in Redis itself" : ""}`,
      value,
      unit: "µs/batch",
      against: `${least.depth.name}`,
      ratio,
      ...(subject.depth.barred ? { bar: atMost(ratio, MOST, " ×") } : {}),
    });
    if (!ofEngine) continue;
    const whole = median(subject.times);
    context.row({
      case: `${engine}, ${subject.depth.name}, the request over HTTP`,
      value: whole,
      unit: "µs/batch",
      against: `${least.depth.name}`,
      ratio: whole / median(least.times),
      ...(subject.depth.barred ? { bar: atMost(whole / median(least.times), MOST, " ×") } : {}),
    });
  }
}

export const depth: Bench = {
  name: "depth",
  title: "a claim's cost by how many jobs are waiting, delayed or dead",
  async run(context) {
    const platform = bunPlatform();
    const scratch = new Scratch();
    const redis = await startRedisHttp();
    try {
      for (const spec of [
        { kind: "redis", url: redis.url, token: redis.token },
        { kind: "sqlite", file: scratch.file(), synchronous: "normal" },
      ] as const) {
        const broker = await openBroker(spec, platform);
        const subjects: Subject[] = [];
        for (const [index, one] of depths(context).entries()) {
          context.progress(`${spec.kind}: ${one.name}`);
          const queue = await openQueue(broker, `depth-${index}`);
          await prepare(queue, one);
          subjects.push({ depth: one, queue, times: [], engineTimes: [] });
        }
        context.progress(`${spec.kind}: measuring`);
        await measure(context, subjects, spec.kind === "redis" ? redis : undefined);
        report(context, spec.kind, subjects);
        await broker.close();
      }
    } finally {
      await redis.stop();
      scratch.remove();
    }
    context.note(
      `Each batch acks ${BATCH} jobs and claims the next ${BATCH}, in one exchange; medians, the queues in turn. All queues of an engine share one server or file; sqlite with synchronous=normal, so that no fsync hides the difference.`,
    );
  },
};
