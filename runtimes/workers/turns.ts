/**
 * Letting other events of an object have their turn while it drains itself.
 *
 * Between a claim and the next nothing in such a run waits for anything outside: SQL is synchronous, and so may the handlers be. Without a
 * turn no enqueue would get in, no timer fire, and the clock would stand still until the queue is empty.
 *
 * @module
 */
import type {
  Broker,
  BrokerLimits,
  BrokerQueue,
  Capability,
  ClaimReply,
  ClaimRequest,
  Enqueued,
  ExchangeReply,
  ExchangeRequest,
  NewJob,
  QueueSettings,
  QueueSizes,
  RenewResult,
  Settlement,
  SettleResult,
} from "../../src/broker.ts";

/** A timer of no time: it costs some microseconds, and counts as I/O, so the clock moves. */
function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

/** What a drain needs. The rest is asked of the broker behind. */
const CAPABILITIES: ReadonlySet<Capability> = new Set<Capability>([
  "exchange",
  "abandon",
  "delay",
  "priority",
  "dedupe",
  "sizes",
  "memo",
]);

/** The broker with a turn for others before each claim. */
export class TurnTakingBroker implements Broker {
  readonly name: string;
  readonly capabilities: ReadonlySet<Capability>;
  readonly #broker: Broker;

  constructor(broker: Broker) {
    this.name = broker.name;
    this.capabilities = CAPABILITIES.intersection(broker.capabilities);
    this.#broker = broker;
  }

  get requests(): number {
    return this.#broker.requests;
  }

  queue(name: string, settings: QueueSettings): BrokerQueue {
    return new TurnTakingQueue(this.#broker.queue(name, settings));
  }

  close(): Promise<void> {
    return this.#broker.close();
  }
}

class TurnTakingQueue implements BrokerQueue {
  readonly name: string;
  readonly #queue: BrokerQueue;

  constructor(queue: BrokerQueue) {
    this.name = queue.name;
    this.#queue = queue;
  }

  get limits(): BrokerLimits {
    return this.#queue.limits;
  }

  open(): Promise<void> {
    return this.#queue.open();
  }

  enqueue(requestId: string, jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    return this.#queue.enqueue(requestId, jobs);
  }

  async claim(request: ClaimRequest): Promise<ClaimReply> {
    await turn();
    return await this.#queue.claim(request);
  }

  settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    return this.#queue.settle(settlements);
  }

  renew(leaseIds: readonly string[]): Promise<readonly RenewResult[]> {
    return this.#queue.renew(leaseIds);
  }

  async exchange(request: ExchangeRequest): Promise<ExchangeReply> {
    await turn();
    return (await this.#queue.exchange?.(request)) as ExchangeReply;
  }

  async abandon(leaseIds: readonly string[]): Promise<void> {
    await this.#queue.abandon?.(leaseIds);
  }

  async sizes(): Promise<QueueSizes> {
    return (await this.#queue.sizes?.()) as QueueSizes;
  }
}
