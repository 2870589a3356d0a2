/**
 * The nats-server of a test file: started before its tests and ended after them, with what they need to open queues there.
 *
 * @module
 */
import { afterAll, afterEach, beforeAll } from "bun:test";
import { NatsBroker, type NatsBrokerOptions } from "../../adapters/nats/mod.ts";
import type { BrokerQueue, QueueSettings } from "../../src/broker.ts";
import { type NatsServer, startNats } from "./nats_server.ts";
import { Operator } from "./nats_tap.ts";

/** Nothing runs out while a test lasts. */
export const LONG: QueueSettings = { leaseMs: 60_000, requestTimeoutMs: 5_000, dedupeWindowMs: 60_000 };

export class NatsFixture {
  readonly #url: (() => string) | undefined;
  #running: { readonly server: NatsServer; readonly operator: Operator } | undefined;
  readonly #opened: NatsBroker[] = [];
  #serial = 0;

  constructor(url: (() => string) | undefined) {
    this.#url = url;
  }

  async start(): Promise<void> {
    const server = await startNats();
    this.#running = { server, operator: await Operator.connect(server.url) };
  }

  async stop(): Promise<void> {
    await this.#running?.operator.close();
    await this.#running?.server.stop();
  }

  get server(): NatsServer {
    return this.#nats.server;
  }

  /** A connection to the server past every adapter. */
  get operator(): Operator {
    return this.#nats.operator;
  }

  /** A broker of its own connection, closed at the end of the test. */
  connect(options: Partial<NatsBrokerOptions> = {}): NatsBroker {
    const broker = new NatsBroker({ url: this.#url?.() ?? this.server.url, ...options });
    this.#opened.push(broker);
    return broker;
  }

  /** A queue on a connection of its own, opened. */
  async open(
    name: string,
    options: Partial<NatsBrokerOptions> = {},
    settings: Partial<QueueSettings> = {},
  ): Promise<BrokerQueue> {
    const queue = this.connect(options).queue(name, { ...LONG, ...settings });
    await queue.open();
    return queue;
  }

  /** A name that no queue has yet. */
  name(): string {
    this.#serial += 1;
    return `queue-${this.#serial}`;
  }

  /** Closes the brokers of a test. */
  async closeAll(): Promise<void> {
    for (const broker of this.#opened.splice(0)) await broker.close();
  }

  get #nats() {
    if (this.#running === undefined) throw new Error("Cannot use the NATS of a test file outside its tests");
    return this.#running;
  }
}

/** One nats-server for all tests of the calling file. Brokers connect to `url`, asked each time; by default to the server itself. */
export function natsForFile(url?: () => string): NatsFixture {
  const nats = new NatsFixture(url);
  beforeAll(() => nats.start());
  afterEach(() => nats.closeAll());
  afterAll(() => nats.stop());
  return nats;
}
