/**
 * The broker's door: every request that arrives is carried out by the engine and shown to the model together with its answer.
 *
 * @module
 */
import type { SimulatedPlatform } from "../../runtimes/simulated.ts";
import type {
  Broker,
  BrokerQueue,
  Capability,
  ClaimReply,
  ClaimRequest,
  ExchangeReply,
  ExchangeRequest,
  NewJob,
  QueueSettings,
  Settlement,
  Watch,
} from "../../src/broker.ts";
import type { QueueModel } from "./model.ts";

/** Makes a sound queue of the engine a faulty one: for the tests of the checker itself. */
export type Tamper = (queue: BrokerQueue) => BrokerQueue;

export class Door {
  readonly #engine: Broker;
  readonly #base: SimulatedPlatform;
  readonly #models: ReadonlyMap<string, QueueModel>;
  readonly #tamper: Tamper;
  readonly capabilities: ReadonlySet<Capability>;

  constructor(
    engine: Broker,
    base: SimulatedPlatform,
    models: ReadonlyMap<string, QueueModel>,
    tamper: Tamper = (queue) => queue,
  ) {
    this.#engine = engine;
    this.#base = base;
    this.#models = models;
    this.#tamper = tamper;
    this.capabilities = engine.capabilities;
  }

  queue(name: string, settings: QueueSettings): DoorQueue {
    return new DoorQueue(
      this.#tamper(this.#engine.queue(name, settings)),
      this.#models.get(name) as QueueModel,
      this.#base,
    );
  }
}

type Full = Required<BrokerQueue>;

class DoorQueue {
  readonly name: string;
  readonly limits: BrokerQueue["limits"];
  readonly #queue: Full;
  readonly #model: QueueModel;
  readonly #base: SimulatedPlatform;

  constructor(queue: BrokerQueue, model: QueueModel, base: SimulatedPlatform) {
    this.name = queue.name;
    this.limits = queue.limits;
    this.#queue = queue as Full;
    this.#model = model;
    this.#base = base;
  }

  open(): Promise<void> {
    return this.#queue.open();
  }

  async enqueue(requestId: string, jobs: readonly NewJob[]): ReturnType<BrokerQueue["enqueue"]> {
    const now = this.#base.now();
    const answers = await this.#queue.enqueue(requestId, jobs);
    this.#model.enqueued(requestId, jobs, answers, now);
    return answers;
  }

  /** @param connected whether the one who claims is still there: an engine lets go of a claim that waits when its connection ends. */
  async claim(holder: string, request: ClaimRequest, connected: () => boolean): Promise<ClaimReply> {
    if (request.waitMs > 0) {
      await this.#somethingThere(request);
      if (!connected()) return { deliveries: [] };
    }
    const now = this.#base.now();
    const reply = await this.#queue.claim(request);
    this.#model.claimed(holder, request, reply, now);
    return reply;
  }

  async settle(settlements: readonly Settlement[]): ReturnType<BrokerQueue["settle"]> {
    const now = this.#base.now();
    const results = await this.#queue.settle(settlements);
    this.#model.settled(settlements, results, now);
    return results;
  }

  async renew(leaseIds: readonly string[]): ReturnType<BrokerQueue["renew"]> {
    const now = this.#base.now();
    const results = await this.#queue.renew(leaseIds);
    this.#model.renewed(leaseIds, results, now);
    return results;
  }

  async exchange(holder: string, request: ExchangeRequest): Promise<ExchangeReply> {
    const now = this.#base.now();
    const reply = await this.#queue.exchange(request);
    this.#model.settled(request.settle, reply.settled, now);
    this.#model.renewed(request.renew, reply.renewed, now);
    if (request.claim !== undefined) {
      this.#model.claimed(holder, request.claim, reply.claimed ?? { deliveries: [] }, now);
    }
    return reply;
  }

  async abandon(leaseIds: readonly string[]): Promise<void> {
    const now = this.#base.now();
    await this.#queue.abandon(leaseIds);
    this.#model.abandoned(leaseIds, now);
  }

  async setPaused(paused: boolean): Promise<void> {
    await (paused ? this.#queue.pause() : this.#queue.resume());
    this.#model.setPaused(paused);
  }

  async redrive(): Promise<void> {
    this.#model.redriven(await this.#queue.redrive({ limit: 100_000 }));
  }

  watch(onWake: () => void): Promise<Watch> {
    return this.#queue.watch(onWake, () => {});
  }

  sizes(): ReturnType<Full["sizes"]> {
    return this.#queue.sizes();
  }

  /** What an engine with `waits` does: holds the claim until something can be claimed, the time is over or the caller ends the wait. */
  async #somethingThere({ leaseId, waitMs, signal }: ClaimRequest): Promise<void> {
    const end = this.#base.now() + waitMs;
    const waits = () =>
      !this.#model.claimable(this.#base.now()) && this.#base.now() < end && signal?.aborted !== true;
    // A copy of a claim that is known is answered at once.
    while (waits() && !this.#model.leases.has(leaseId)) {
      await new Promise<void>((resolve) => {
        // Any is enough to look again; calling it twice does nothing. A turn later, so that one request is carried out after the other.
        const cancel = this.#model.onceChanged(() => this.#base.setTimer(0, resolve));
        const nextMs = Math.max(1, Math.min(end, this.#model.nextChangeAt()) - this.#base.now());
        this.#base.setTimer(nextMs, resolve);
        signal?.addEventListener("abort", () => this.#base.setTimer(0, resolve));
        this.#base.setTimer(nextMs, cancel);
      });
    }
  }
}
