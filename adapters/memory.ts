/**
 * The memory broker: the reference. Every capability but `waits`, nothing kept beyond the process, no timer and no
 * ambient clock: what came due or ran out is moved by the next claim, by the clock it was given. So it serves tests, a
 * deterministic simulation, and short-lived runs that may lose their jobs.
 *
 * @example
 * ```ts
 * const broker = new MemoryBroker({ now: () => performance.now(), wallNow: () => Date.now() });
 * ```
 *
 * @module
 */

import type { Broker, BrokerQueue, Capability, QueueSettings } from "../src/broker.ts";
import { assertKnownFields } from "../src/known_fields.ts";
import { checkFunction, checkOptions } from "./checks.ts";
import { type Connection, MemoryQueue } from "./memory/queue.ts";
import { type Instant, QueueStore } from "./memory/store.ts";
import { ALL_BUT_WAITS } from "./offers.ts";

export interface MemoryBrokerOptions {
  /** The broker's clock in milliseconds; it decides leases, delays and windows. Must never go back. */
  readonly now: () => number;
  /** Unix milliseconds, for the times that people see (`enqueuedAt`, `dueAt`, `diedAt`). By default `now`. */
  readonly wallNow?: () => number;
}

/** What several connections share: the clock and the queues. */
interface Engine {
  readonly now: () => number;
  readonly wallNow: () => number;
  readonly queues: Map<string, QueueStore>;
}

const OPTION_FIELDS: ReadonlySet<string> = new Set<keyof MemoryBrokerOptions>(["now", "wallNow"]);

/** One connection to an engine in this process's memory. */
export class MemoryBroker implements Broker {
  readonly name = "memory";
  readonly capabilities: ReadonlySet<Capability> = ALL_BUT_WAITS;
  /** Always 0: the engine needs no requests. */
  readonly requests = 0;
  #engine: Engine;
  #isClosed = false;
  readonly #watches = new Set<() => void>();
  readonly #connection: Connection;

  /** @throws {TypeError} when an option is unknown, or a clock is no function. */
  constructor(options: MemoryBrokerOptions) {
    checkOptions("the memory broker", options, "{ now: () => performance.now() }");
    assertKnownFields("use the memory broker", "", options, OPTION_FIELDS);
    const { now, wallNow = now } = options;
    checkFunction("the memory broker", "now", now, "() => performance.now()");
    checkFunction("the memory broker", "wallNow", wallNow, "() => Date.now()");
    this.#engine = { now, wallNow, queues: new Map() };
    const isClosed = () => this.#isClosed;
    this.#connection = {
      get isClosed() {
        return isClosed();
      },
      at: (): Instant => ({ now: this.#engine.now(), wall: this.#engine.wallNow() }),
      keep: (end) => {
        this.#watches.add(end);
        return () => {
          this.#watches.delete(end);
          end();
        };
      },
    };
  }

  /** Another connection to the same engine: it sees the same queues and is closed by itself. */
  connect(): MemoryBroker {
    const other = new MemoryBroker({ now: this.#engine.now, wallNow: this.#engine.wallNow });
    other.#engine = this.#engine;
    return other;
  }

  queue(name: string, settings: QueueSettings): BrokerQueue {
    const store = this.#engine.queues.get(name) ?? new QueueStore();
    const queue = new MemoryQueue(name, settings, store, this.#connection);
    this.#engine.queues.set(name, store);
    return queue;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const end of this.#watches) end();
    this.#watches.clear();
  }
}
