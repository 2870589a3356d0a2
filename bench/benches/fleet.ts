/**
 * Many workers on one queue: what they do together, how evenly they share, and that none does what another did.
 *
 * @module
 */
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import type { BrokerQueue } from "../../src/mod.ts";
import type { FleetParams, FleetResult } from "../children/fleet_worker.ts";
import { atLeast, atMost, type Bench, type Context } from "../support/bench.ts";
import { type BrokerSpec, fill, newJob, openBroker, openQueue } from "../support/brokers.ts";
import { Child } from "../support/child.ts";
import { median } from "../support/figures.ts";
import { Scratch, startRedisHttp } from "../support/servers.ts";

const LEAST_SHARE = 0.8;

interface Outcome {
  /** Jobs a second of all workers together. */
  readonly rate: number;
  /** Jain's index of what each worker ran: 1 when all ran the same, 1/n when one ran all. */
  readonly fairness: number;
  /** Jobs run more than once, and jobs not run. */
  readonly repeats: number;
  readonly missing: number;
}

/** Asks seldom: SQLite counts row by row, on the processors that the workers want. */
async function emptied(queue: BrokerQueue): Promise<void> {
  for (;;) {
    const sizes = await queue.sizes?.();
    if (sizes === undefined || sizes.ready + sizes.held + sizes.delayed === 0) return;
    await Bun.sleep(100);
  }
}

/**
 * Warms the workers up, stops the queue, fills it, and lets them all go at once.
 *
 * @param warmUp jobs a worker, untimed.
 */
async function runFleet(spec: BrokerSpec, workers: number, jobs: number, warmUp: number): Promise<Outcome> {
  const name = `fleet-${crypto.randomUUID()}`;
  const broker = await openBroker(spec, bunPlatform());
  const queue = await openQueue(broker, name);
  const params: FleetParams = { broker: spec, queue: name };
  const children = Array.from({ length: workers }, () => new Child("fleet_worker.ts", params));
  try {
    await Promise.all(children.map((child) => child.next()));
    // The code of each has to be compiled, or that is what is measured.
    for (let left = warmUp * workers; left > 0; left -= 1000) {
      await queue.enqueue(
        crypto.randomUUID(),
        Array.from({ length: Math.min(left, 1000) }, () => newJob(-1)),
      );
    }
    await emptied(queue);
    await queue.pause?.();
    await fill(queue, jobs);
    await queue.resume?.();
    await emptied(queue);
    for (const child of children) child.tell("stop");
    return outcomeOf(await Promise.all(children.map((child) => child.next<FleetResult>())), jobs);
  } finally {
    await Promise.all(children.map((child) => child.end()));
    await broker.close();
  }
}

function outcomeOf(results: readonly FleetResult[], jobs: number): Outcome {
  const counts = results.map(({ ran }) => ran.length);
  const total = counts.reduce((sum, count) => sum + count, 0);
  const squares = counts.reduce((sum, count) => sum + count * count, 0);
  const distinct = new Set(results.flatMap(({ ran }) => ran)).size;
  const busy = results.filter(({ ran }) => ran.length > 0);
  const ms = Math.max(...busy.map(({ lastAt }) => lastAt)) - Math.min(...busy.map(({ firstAt }) => firstAt));
  return {
    rate: (total / ms) * 1000,
    fairness: (total * total) / (results.length * squares),
    repeats: total - distinct,
    missing: jobs - distinct,
  };
}

/** @param warmUp jobs a worker. */
async function grow(context: Context, spec: BrokerSpec, jobs: number, warmUp: number): Promise<void> {
  const sizes = context.pick([1, 2, 4, 8, 16, 32], [1, 4, 32], [1, 2]);
  const outcomes = new Map<number, Outcome[]>(sizes.map((size) => [size, []]));
  for (let round = 0; round < context.rounds; round++) {
    for (const size of sizes) {
      context.progress(`${spec.kind}, ${size} workers, round ${round + 1}`);
      outcomes.get(size)?.push(await runFleet(spec, size, jobs, warmUp));
    }
  }
  const of = (size: number) => outcomes.get(size) as Outcome[];
  const rates = sizes.map((size) => median(of(size).map(({ rate }) => rate)));
  const best = Math.max(...rates);
  sizes.forEach((size, at) => {
    const rate = rates[at] as number;
    const last = size === 32;
    context.row({
      case: `${spec.kind}, ${size} worker${size === 1 ? "" : "s"} together`,
      value: rate,
      unit: "jobs/s",
      against: "the best of these",
      ratio: rate / best,
      ...(last ? { bar: atLeast(rate / best, LEAST_SHARE, " ×") } : {}),
    });
    if (size > 1) {
      context.row({
        case: `${spec.kind}, ${size} workers: fairness`,
        value: median(of(size).map(({ fairness }) => fairness)),
        unit: "of 1 (Jain)",
      });
    }
  });
  const repeats = [...outcomes.values()].flat().reduce((sum, one) => sum + one.repeats + one.missing, 0);
  context.row({
    case: `${spec.kind}: jobs run twice or not at all, all runs`,
    value: repeats,
    unit: "jobs",
    bar: atMost(repeats, 0),
  });
}

export const fleet: Bench = {
  name: "fleet",
  title: "1 to 32 workers on one queue: rate, fairness, nothing twice",
  async run(context) {
    const scratch = new Scratch();
    const redis = await startRedisHttp();
    try {
      await grow(
        context,
        { kind: "redis", url: redis.url, token: redis.token },
        context.pick(600_000, 60_000, 300),
        // After fewer, 32 processes spend as much time compiling as working: a fleet lives long, and does that once.
        context.pick(20_000, 10_000, 50),
      );
      await grow(
        context,
        { kind: "sqlite", file: scratch.file(), synchronous: "full" },
        context.pick(400_000, 60_000, 300),
        context.pick(24_000, 4_000, 50),
      );
    } finally {
      await redis.stop();
      scratch.remove();
    }
    context.note(
      "Each worker is a process with a connection of its own, one slot, prefetch auto, jobs that do nothing; all share two cores with the server. They are warmed up first, on Redis by 20,000 jobs each: with 5,000 the compilers of 32 processes took as much of the time as the jobs. And they run 600,000: of 200,000, which take two seconds, the waking of 32 sleeping processes is a part. They then idle on a paused queue with the whole backlog in it, which is resumed.",
    );
    context.note(
      "sqlite: before that each worker runs some 24,000 jobs untimed (4,000 in a quick run): a process goes on compiling for so long, and 32 do it on the same two cores. Turns are long where many want the one file, so shares even out over some seconds.",
    );
  },
};
