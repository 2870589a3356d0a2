/**
 * The Redis of a test file: started before its tests and ended after them, with what they need to open queues there.
 *
 * @module
 */
import { afterAll, afterEach, beforeAll, beforeEach } from "bun:test";
import type { RedisBroker, RedisBrokerOptions } from "../../adapters/redis/mod.ts";
import type { Gateway, GatewayOptions } from "../../runtimes/bun/gateway/gateway.ts";
import type { BrokerQueue, QueueSettings } from "../../src/broker.ts";
import { type RedisOverHttp, startRedisOverHttp } from "./gateway.ts";
import type { RedisServer } from "./redis_server.ts";

/** Nothing runs out while a test lasts. */
export const LONG: QueueSettings = { leaseMs: 60_000, requestTimeoutMs: 10_000, dedupeWindowMs: 60_000 };

export class RedisFixture {
  readonly #options: Partial<GatewayOptions>;
  #running: RedisOverHttp | undefined;
  #serial = 0;

  constructor(options: Partial<GatewayOptions>) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#running = await startRedisOverHttp({}, this.#options);
  }

  async stop(): Promise<void> {
    await this.#running?.stop();
  }

  get server(): RedisServer {
    return this.#redis.server;
  }

  get gateway(): Gateway {
    return this.#redis.gateway;
  }

  /** A broker of its own connection. */
  connect(options: Partial<RedisBrokerOptions> = {}): RedisBroker {
    return this.#redis.connect(options);
  }

  /** A name that no queue has yet. */
  name(): string {
    this.#serial += 1;
    return `queue-${this.#serial}`;
  }

  /** A new queue, opened. */
  async fresh(): Promise<BrokerQueue> {
    const queue = this.connect().queue(this.name(), LONG);
    await queue.open();
    return queue;
  }

  get #redis(): RedisOverHttp {
    if (this.#running === undefined) throw new Error("Cannot use the Redis of a test file outside its tests");
    return this.#running;
  }
}

/** One Redis behind a gateway for all tests of the calling file. */
export function redisForFile(options: Partial<GatewayOptions> = {}): RedisFixture {
  const redis = new RedisFixture(options);
  beforeAll(() => redis.start());
  afterAll(() => redis.stop());
  return redis;
}

/** A Redis of its own for each test of the calling file. */
export function redisForEachTest(): RedisFixture {
  const redis = new RedisFixture({});
  beforeEach(() => redis.start());
  afterEach(() => redis.stop());
  return redis;
}
