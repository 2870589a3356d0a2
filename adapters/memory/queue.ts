import type {
  BrokerLimits,
  BrokerQueue,
  ClaimReply,
  ClaimRequest,
  Enqueued,
  ExchangeReply,
  ExchangeRequest,
  JobState,
  NewJob,
  PeekedJob,
  QueueSettings,
  QueueSizes,
  RenewResult,
  Settlement,
  SettleResult,
  Watch,
} from "../../src/broker.ts";
import { BrokerError } from "../../src/errors.ts";
import { checkClaim, checkEnqueue, checkMemo, checkQueue } from "../checks.ts";
import { looseLimits } from "../offers.ts";
import type { Instant, QueueStore } from "./store.ts";

/** The largest body, as SQLite takes it. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** What a queue needs of its connection. */
export interface Connection {
  readonly isClosed: boolean;
  at(): Instant;
  /** Has a watch ended with the connection, at the latest; answers what ends it earlier. */
  keep(end: () => void): () => void;
}

/** One queue as one connection sees it: checks the arguments, reads the clock, and hands over to the store. */
export class MemoryQueue implements BrokerQueue {
  readonly name: string;
  readonly limits: BrokerLimits;
  readonly #store: QueueStore;
  readonly #connection: Connection;
  readonly #windowMs: number;
  #memo: string | undefined;

  constructor(name: string, settings: QueueSettings, store: QueueStore, connection: Connection) {
    checkQueue(name, settings);
    this.name = name;
    this.limits = looseLimits(settings.leaseMs, MAX_BODY_BYTES);
    this.#windowMs = settings.dedupeWindowMs;
    this.#store = store;
    this.#connection = connection;
  }

  async open(): Promise<void> {
    this.#at("open");
    this.#memo = this.#store.memo;
  }

  get memo(): string | undefined {
    return this.#memo;
  }

  async enqueue(requestId: string, jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    checkEnqueue(requestId, jobs, this.limits);
    return this.#store.enqueue(requestId, jobs, this.#at("enqueue"), this.#windowMs);
  }

  async claim(request: ClaimRequest): Promise<ClaimReply> {
    checkClaim(request, this.limits);
    return this.#claim(request, this.#at("claim"));
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    return this.#store.settle(settlements, this.#at("settle").now);
  }

  async renew(leaseIds: readonly string[]): Promise<readonly RenewResult[]> {
    return this.#renew(leaseIds, this.#at("renew"));
  }

  async exchange(request: ExchangeRequest): Promise<ExchangeReply> {
    if (request.claim !== undefined) checkClaim(request.claim, this.limits);
    if (request.remember !== undefined) checkMemo(request.remember);
    const at = this.#at("exchange");
    const settled = this.#store.settle(request.settle, at.now);
    const renewed = this.#renew(request.renew, at);
    if (request.remember !== undefined) this.#store.remember(request.remember);
    return { settled, renewed, claimed: request.claim && this.#claim(request.claim, at) };
  }

  async abandon(leaseIds: readonly string[]): Promise<void> {
    const { now } = this.#at("abandon");
    for (const leaseId of leaseIds) this.#store.abandon(leaseId, now);
  }

  async watch(onWake: () => void, _onEnd: (error: Error) => void): Promise<Watch> {
    this.#at("watch");
    const end = this.#connection.keep(this.#store.listen(onWake));
    return {
      close: async () => {
        end();
      },
    };
  }

  async sizes(): Promise<QueueSizes> {
    return this.#store.sizes(this.#at("sizes").now);
  }

  async peek(state: JobState, limit: number): Promise<readonly PeekedJob[]> {
    return this.#store.peek(state, limit, this.#at("peek"));
  }

  async clear(states: readonly ("ready" | "delayed" | "dead")[]): Promise<number> {
    return this.#store.clear(states, this.#at("clear").now);
  }

  async redrive(options: { readonly ids?: readonly string[]; readonly limit: number }): Promise<number> {
    this.#at("redrive");
    return this.#store.redrive(options.ids, options.limit);
  }

  async pause(): Promise<void> {
    this.#at("pause");
    this.#store.setPaused(true);
  }

  async resume(): Promise<void> {
    this.#at("resume");
    this.#store.setPaused(false);
  }

  #claim(request: ClaimRequest, at: Instant): ClaimReply {
    return this.#store.claim(request.leaseId, request.max, request.recall === true, at, this.limits.leaseMs);
  }

  #renew(leaseIds: readonly string[], at: Instant): RenewResult[] {
    return leaseIds.map((leaseId) => this.#store.renew(leaseId, at.now, this.limits.leaseMs));
  }

  #at(verb: string): Instant {
    if (this.#connection.isClosed) {
      throw new BrokerError("memory", verb, `Cannot ${verb}: the broker is closed; open a new one`);
    }
    return this.#connection.at();
  }
}
