/**
 * The Redis broker: a queue in any Redis from 6.2 on that is reached over HTTP (Upstash's REST protocol), so it works wherever `fetch`
 * does.
 *
 * @module
 */
import type { Broker, BrokerQueue, Capability, QueueSettings } from "../../src/broker.ts";
import { checkQueue } from "../checks.ts";
import { type RedisBrokerOptions, type ResolvedRedisOptions, resolveRedisOptions } from "./options.ts";
import { type Connection, RedisQueue } from "./queue.ts";

export type { RedisBrokerOptions } from "./options.ts";

const CAPABILITIES: ReadonlySet<Capability> = new Set<Capability>([
  "exchange",
  "abandon",
  "delay",
  "priority",
  "dedupe",
  "wake",
  "sizes",
  "peek",
  "clear",
  "redrive",
  "pause",
  "memo",
]);

/**
 * One connection to a Redis over HTTP.
 *
 * @example
 * ```ts
 * const broker = new RedisBroker({ url: "https://example.upstash.io", token });
 * ```
 */
export class RedisBroker implements Broker {
  readonly name = "redis";
  readonly capabilities: ReadonlySet<Capability> = CAPABILITIES;
  readonly #connection: Connection;
  readonly #watches = new Set<() => void>();
  #requests = 0;
  #isClosed = false;

  /**
   * Makes no request.
   *
   * @throws {TypeError} when url, token or prefix cannot be used.
   * @throws {RangeError} when a number is out of range.
   */
  constructor(options: RedisBrokerOptions) {
    const resolved: ResolvedRedisOptions = resolveRedisOptions(options);
    const isClosed = () => this.#isClosed;
    this.#connection = {
      options: resolved,
      get isClosed() {
        return isClosed();
      },
      countRequest: () => {
        this.#requests += 1;
      },
      keep: (end) => {
        this.#watches.add(end);
        return () => {
          this.#watches.delete(end);
          end();
        };
      },
    };
  }

  get requests(): number {
    return this.#requests;
  }

  queue(name: string, settings: QueueSettings): BrokerQueue {
    checkQueue(name, settings);
    return new RedisQueue(name, settings, this.#connection);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const end of this.#watches) end();
    this.#watches.clear();
  }
}
