import type {
  BrokerLimits,
  BrokerQueue,
  ClaimReply,
  ClaimRequest,
  Enqueued,
  JobState,
  NewJob,
  PeekedJob,
  QueueSettings,
  QueueSizes,
  RenewResult,
  Settlement,
  SettleResult,
} from "../../src/broker.ts";
import { BrokerError } from "../../src/errors.ts";
import { checkClaim, checkEnqueue } from "../checks.ts";
import { Claiming } from "./claim.ts";
import type { Core } from "./core.ts";
import { enqueue } from "./enqueuing.ts";
import { Exhausted } from "./exhausted.ts";
import { Managing } from "./managing.ts";
import { Provisioning } from "./provisioning.ts";
import { renew } from "./renewing.ts";
import { Settling } from "./settling.ts";

/** The most deliveries one claim may ask for, and the most jobs one enqueue may carry. */
const MOST_AT_ONCE = 1000;

/** All of one queue over one connection: what its handles share. */
export class QueueParts {
  readonly core: Core;
  readonly provisioning: Provisioning;
  readonly settling: Settling;
  readonly claiming: Claiming;
  readonly managing: Managing;

  constructor(core: Core) {
    this.core = core;
    const exhausted = new Exhausted(core);
    this.provisioning = new Provisioning(core, exhausted);
    this.settling = new Settling(core);
    this.claiming = new Claiming(core, this.provisioning, this.settling, exhausted);
    this.managing = new Managing(core);
  }

  /** Ends what runs by itself. */
  async close(): Promise<void> {
    this.claiming.close();
    await this.settling.idle();
  }
}

/** One handle of a queue: checks the arguments and hands over. */
export class NatsQueue implements BrokerQueue {
  readonly name: string;
  readonly #settings: QueueSettings;
  readonly #parts: QueueParts;

  constructor(name: string, settings: QueueSettings, parts: QueueParts) {
    this.name = name;
    this.#settings = settings;
    this.#parts = parts;
  }

  get limits(): BrokerLimits {
    const { core } = this.#parts;
    return {
      maxBatch: this.maxBatch,
      maxEnqueue: MOST_AT_ONCE,
      maxInFlight: core.limits.maxInFlight,
      maxBodyBytes: core.maxBodyBytes,
      leaseMs: this.#parts.provisioning.leaseMs(this.#settings),
      renewable: true,
      exclusive: false,
    };
  }

  /** As the limit of that name. */
  get maxBatch(): number {
    const { maxInFlight, maxBatch } = this.#parts.core.limits;
    return Math.min(MOST_AT_ONCE, maxInFlight, maxBatch);
  }

  get #timeoutMs(): number {
    return this.#settings.requestTimeoutMs;
  }

  async open(): Promise<void> {
    this.#check("open");
    await this.#parts.provisioning.open(this.#settings);
  }

  async enqueue(requestId: string, jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    checkEnqueue(requestId, jobs, this.limits);
    this.#check("enqueue");
    return enqueue(this.#parts.core, requestId, jobs, this.#timeoutMs, this.#settings.dedupeWindowMs);
  }

  claim(request: ClaimRequest): Promise<ClaimReply> {
    const { core, provisioning, claiming } = this.#parts;
    // An async function would reject as well, but hands its answer on some turns of the microtask queue later.
    try {
      checkClaim(request, this);
      this.#check("claim");
      core.leasesOf(provisioning.leaseMs(this.#settings));
      return claiming.claim(request, this.#timeoutMs);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    try {
      this.#check("settle");
      return this.#parts.settling.settle(settlements, this.#timeoutMs);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async renew(leaseIds: readonly string[]): Promise<readonly RenewResult[]> {
    this.#check("renew");
    return renew(this.#parts.core, leaseIds, this.#timeoutMs);
  }

  async abandon(leaseIds: readonly string[]): Promise<void> {
    this.#check("abandon");
    await this.#parts.claiming.abandon(leaseIds, this.#timeoutMs);
  }

  async sizes(): Promise<QueueSizes> {
    this.#check("sizes");
    return this.#parts.managing.sizes(this.#timeoutMs);
  }

  async peek(state: JobState, limit: number): Promise<readonly PeekedJob[]> {
    this.#check("peek");
    return this.#parts.managing.peek(state, limit, this.#timeoutMs);
  }

  async clear(states: readonly ("ready" | "delayed" | "dead")[]): Promise<number> {
    this.#check("clear");
    return this.#parts.managing.clear(states, this.#timeoutMs);
  }

  async redrive(options: { readonly ids?: readonly string[]; readonly limit: number }): Promise<number> {
    this.#check("redrive");
    return this.#parts.managing.redrive(options, this.#timeoutMs);
  }

  async pause(): Promise<void> {
    this.#check("pause");
    await this.#parts.managing.setPaused(true, this.#timeoutMs);
  }

  async resume(): Promise<void> {
    this.#check("resume");
    await this.#parts.managing.setPaused(false, this.#timeoutMs);
  }

  #check(verb: string): void {
    if (this.#parts.core.link.isClosed) {
      throw new BrokerError("nats", verb, `Cannot ${verb}: the broker is closed; open a new one`);
    }
  }
}
