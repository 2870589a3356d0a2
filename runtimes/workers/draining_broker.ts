/**
 * What an object that drains itself adds to its broker.
 *
 * Turns for others: between a claim and the next nothing in such a run waits for anything outside, for SQL is synchronous, and so may the handlers be. Without a
 * turn no enqueue would get in, no timer fire, and the clock would stand still until the queue is empty.
 *
 * Claims on disk: what was written is confirmed only later. A job that takes the object down in its very first turn would take the claim's record along, never be charged an
 * attempt, and come again for ever, before all others. So no job is handed out before its claim is confirmed.
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

/** What a drain has no use for: it is asked of the broker behind. */
const LEFT_OUT: readonly Capability[] = ["wake", "waits", "peek", "clear", "redrive", "pause"];

/** The broker with a turn for others before each claim, and its deliveries on disk after it. */
export class DrainingBroker implements Broker {
  readonly name: string;
  readonly capabilities: ReadonlySet<Capability>;
  readonly #broker: Broker;
  readonly #confirm: () => Promise<void>;

  /** @param confirm resolves when all that was written is on disk. */
  constructor(broker: Broker, confirm: () => Promise<void>) {
    this.name = broker.name;
    this.capabilities = broker.capabilities.difference(new Set(LEFT_OUT));
    this.#broker = broker;
    this.#confirm = confirm;
  }

  get requests(): number {
    return this.#broker.requests;
  }

  queue(name: string, settings: QueueSettings): BrokerQueue {
    return new DrainingQueue(this.#broker.queue(name, settings), this.#confirm);
  }

  close(): Promise<void> {
    return this.#broker.close();
  }
}

class DrainingQueue implements BrokerQueue {
  readonly name: string;
  readonly #queue: BrokerQueue;
  readonly #confirm: () => Promise<void>;

  constructor(queue: BrokerQueue, confirm: () => Promise<void>) {
    this.name = queue.name;
    this.#queue = queue;
    this.#confirm = confirm;
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
    const reply = await this.#queue.claim(request);
    if (reply.deliveries.length > 0) await this.#confirm();
    return reply;
  }

  settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    return this.#queue.settle(settlements);
  }

  renew(leaseIds: readonly string[]): Promise<readonly RenewResult[]> {
    return this.#queue.renew(leaseIds);
  }

  async exchange(request: ExchangeRequest): Promise<ExchangeReply> {
    await turn();
    const reply = (await this.#queue.exchange?.(request)) as ExchangeReply;
    if (reply.claimed !== undefined && reply.claimed.deliveries.length > 0) await this.#confirm();
    return reply;
  }

  async abandon(leaseIds: readonly string[]): Promise<void> {
    await this.#queue.abandon?.(leaseIds);
  }

  async sizes(): Promise<QueueSizes> {
    return (await this.#queue.sizes?.()) as QueueSizes;
  }
}
