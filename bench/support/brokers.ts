/**
 * Opening a broker in a contender's process from a description that crosses processes.
 *
 * @module
 */
import type { Broker, BrokerQueue, NewJob, Platform, QueueSettings } from "../../src/mod.ts";

export type BrokerSpec =
  | { readonly kind: "memory" }
  /** `synchronous` as SQLite's own setting: what a crash of the machine may take along. */
  | { readonly kind: "sqlite"; readonly file: string; readonly synchronous: "full" | "normal" }
  /** `wake: false`: as with a server that has no subscriptions, so that workers poll. */
  | { readonly kind: "redis"; readonly url: string; readonly token: string; readonly wake?: boolean }
  | { readonly kind: "nats"; readonly url: string };

export async function openBroker(spec: BrokerSpec, platform: Platform): Promise<Broker> {
  switch (spec.kind) {
    case "memory": {
      const { MemoryBroker } = await import("../../adapters/memory.ts");
      return new MemoryBroker({ now: () => platform.now(), wallNow: () => platform.wallNow() });
    }
    case "sqlite": {
      const { SqliteBroker } = await import("../../adapters/sqlite/mod.ts");
      const { bunSqlite } = await import("../../adapters/sqlite/bun_driver.ts");
      const { file, synchronous } = spec;
      return new SqliteBroker({ database: bunSqlite({ file, synchronous }) });
    }
    case "redis": {
      const { RedisBroker } = await import("../../adapters/redis/mod.ts");
      const broker = new RedisBroker({ url: spec.url, token: spec.token });
      return spec.wake === false ? withoutWake(broker) : broker;
    }
    case "nats": {
      const { NatsBroker } = await import("../../adapters/nats/mod.ts");
      return new NatsBroker({ url: spec.url });
    }
  }
}

/** The same broker, unable to tell of new work. */
export function withoutWake(broker: Broker): Broker {
  return {
    name: broker.name,
    capabilities: new Set([...broker.capabilities].filter((one) => one !== "wake")),
    get requests() {
      return broker.requests;
    },
    queue: (name, settings) => broker.queue(name, settings),
    close: () => broker.close(),
  };
}

const SETTINGS: QueueSettings = { leaseMs: 30_000, requestTimeoutMs: 20_000, dedupeWindowMs: 60_000 };

/** Opens a queue past the loop. */
export async function openQueue(broker: Broker, name: string): Promise<BrokerQueue> {
  const queue = broker.queue(name, SETTINGS);
  await queue.open();
  return queue;
}

/** A plain job: what every contender's jobs carry is `{"n":…}`. */
export function newJob(n: number, more: Partial<NewJob> = {}): NewJob {
  return {
    id: crypto.randomUUID(),
    body: `{"n":${n}}`,
    headers: {},
    priority: "normal",
    delayMs: 0,
    dedupe: false,
    ...more,
  };
}

/** Puts `count` plain jobs into a queue, numbered from 0 on. */
export async function fill(queue: BrokerQueue, count: number, more: Partial<NewJob> = {}): Promise<void> {
  const most = queue.limits.maxEnqueue;
  for (let at = 0; at < count; at += most) {
    const jobs = Array.from({ length: Math.min(most, count - at) }, (_, n) => newJob(at + n, more));
    await queue.enqueue(crypto.randomUUID(), jobs);
  }
}
