/**
 * What a worker with nothing to do costs: requests and commands a minute.
 *
 * @module
 */
import { MemoryBroker } from "../../adapters/memory.ts";
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import { SimulatedPlatform } from "../../runtimes/simulated.ts";
import { type Broker, type BrokerQueue, defineWorker, queue, startWorker } from "../../src/mod.ts";
import { startRedisOverHttp } from "../../tests/support/gateway.ts";
import { atMost, type Bench, type Context } from "../support/bench.ts";
import { withoutWake } from "../support/brokers.ts";

const MOST_WITH_WAKE = 2;
const MOST_POLLING = 30;
const HOUR_MS = 3_600_000;

/** A broker that counts what would be requests of an engine over HTTP. */
function counting(broker: Broker): { readonly broker: Broker; readonly requests: () => number } {
  let requests = 0;
  const counted = (target: BrokerQueue): BrokerQueue =>
    new Proxy(target, {
      get(queue, name) {
        const member: unknown = Reflect.get(queue, name, queue);
        if (typeof member !== "function") return member;
        return (...args: unknown[]) => {
          requests += 1;
          return Reflect.apply(member, queue, args) as unknown;
        };
      },
    });
  return {
    broker: {
      name: broker.name,
      capabilities: broker.capabilities,
      requests: 0,
      queue: (name, settings) => counted(broker.queue(name, settings)),
      close: () => broker.close(),
    },
    requests: () => requests,
  };
}

/** Requests a minute over a simulated hour. */
async function simulated(wakes: boolean, seed: number): Promise<number> {
  const platform = new SimulatedPlatform({ seed });
  const memory = new MemoryBroker({ now: () => platform.now(), wallNow: () => platform.wallNow() });
  const { broker, requests } = counting(wakes ? memory : withoutWake(memory));
  const worker = await platform.run(
    startWorker(defineWorker({ queues: [queue("idle").handle(() => {})] }), { broker, platform }),
  );
  await platform.pass(HOUR_MS);
  const counted = requests();
  await platform.run(worker.stop());
  return counted / (HOUR_MS / 60_000);
}

interface Real {
  readonly requests: number;
  readonly commands: number;
}

/** What a gateway and its Redis count while a worker does nothing, scaled to a minute. */
async function real(wakes: boolean, calmMs: number, forMs: number): Promise<Real> {
  const redis = await startRedisOverHttp();
  try {
    const broker = redis.connect();
    const idle = Promise.withResolvers<void>();
    const platform = bunPlatform();
    const worker = await startWorker(defineWorker({ queues: [queue("idle").handle(() => {})] }), {
      broker: wakes ? broker : withoutWake(broker),
      platform,
      on: (event) => {
        if (event.type === "idle") idle.resolve();
      },
    });
    await idle.promise;
    // The subscription begins, and the gaps between looks grow to their longest.
    await Bun.sleep(calmMs);
    const before = { requests: redis.gateway.counts.requests, commands: await commands(redis) };
    await Bun.sleep(forMs);
    const after = { requests: redis.gateway.counts.requests, commands: await commands(redis) };
    await worker.stop();
    await broker.close();
    const scale = 60_000 / forMs;
    return {
      requests: (after.requests - before.requests) * scale,
      commands: (after.commands - before.commands) * scale,
    };
  } finally {
    await redis.stop();
  }
}

async function commands(redis: Awaited<ReturnType<typeof startRedisOverHttp>>): Promise<number> {
  const text = String(await redis.server.command("INFO", "commandstats"));
  let sum = 0;
  for (const [, name, calls] of text.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)) {
    if (name !== "info") sum += Number(calls);
  }
  return sum;
}

export const idle: Bench = {
  name: "idle",
  title: "requests and commands a minute with nothing to do",
  async run(context) {
    await fromSimulation(context);
    const forMs = context.pick(60_000, 20_000, 500);
    context.progress(`a real Redis for ${forMs / 1000} s`);
    const calmMs = context.pick(12_000, 12_000, 100);
    const [woken, polling] = await Promise.all([real(true, calmMs, forMs), real(false, calmMs, forMs)]);
    for (const [name, cost] of [
      ["with wake", woken],
      ["polling", polling],
    ] as const) {
      context.row({
        case: `redis, ${name}, over ${forMs / 1000} real s`,
        value: cost.requests,
        unit: "requests/min",
      });
      context.row({
        case: `redis, ${name}, with those inside scripts`,
        value: cost.commands,
        unit: "commands/min",
      });
    }
    context.note(
      "One worker, one queue. The simulated hour runs the real loop under a virtual clock: its averages are exact. Over HTTP each such look is one request, one command sent.",
    );
  },
};

async function fromSimulation(context: Context): Promise<void> {
  const hours = context.pick(5, 3, 1);
  for (const [name, wakes, most] of [
    ["with wake", true, MOST_WITH_WAKE],
    ["polling", false, MOST_POLLING],
  ] as const) {
    context.progress(`simulated, ${name}`);
    let sum = 0;
    for (let seed = 1; seed <= hours; seed++) sum += await simulated(wakes, seed);
    const value = sum / hours;
    context.row({
      case: `${name}, over a simulated hour`,
      value,
      unit: "requests/min",
      bar: atMost(value, most, "/min"),
    });
  }
}
