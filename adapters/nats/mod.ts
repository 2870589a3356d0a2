import type { Broker, BrokerQueue, Capability, QueueSettings } from "../../src/broker.ts";
import { checkQueue } from "../checks.ts";
import { Core } from "./core.ts";
import { Link } from "./link.ts";
import { type NatsBrokerOptions, type ResolvedNatsOptions, resolveNatsOptions } from "./options.ts";
import { NatsQueue, QueueParts } from "./queue.ts";

export type { NatsBrokerOptions, NatsSource } from "./options.ts";

const CAPABILITIES: ReadonlySet<Capability> = new Set<Capability>([
  "waits",
  "abandon",
  "delay",
  "priority",
  "dedupe",
  "sizes",
  "peek",
  "clear",
  "redrive",
  "pause",
]);

export class NatsBroker implements Broker {
  readonly name = "nats";
  readonly capabilities: ReadonlySet<Capability> = CAPABILITIES;
  readonly #options: ResolvedNatsOptions;
  readonly #link: Link;
  readonly #queues = new Map<string, QueueParts>();

  constructor(options: NatsBrokerOptions) {
    this.#options = resolveNatsOptions(options);
    this.#link = new Link(this.#options);
  }

  get requests(): number {
    return this.#link.dials;
  }

  queue(name: string, settings: QueueSettings): BrokerQueue {
    checkQueue(name, settings);
    let parts = this.#queues.get(name);
    if (parts === undefined) {
      parts = new QueueParts(new Core(name, this.#link, this.#options));
      this.#queues.set(name, parts);
    }
    return new NatsQueue(name, settings, parts);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((parts) => parts.close()));
    await this.#link.close();
  }
}
