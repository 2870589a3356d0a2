/**
 * One queue loop's line to the broker: requests with a deadline, in one round trip where the engine can, leases renewed along the way.
 *
 * @module
 */
import type {
  BrokerQueue,
  ClaimReply,
  ClaimRequest,
  ExchangeReply,
  RenewResult,
  SettleResult,
} from "./broker.ts";
import { BrokerError } from "./errors.ts";
import type { HeldLease, LeaseOwner } from "./held.ts";
import type { LeaseKeeper } from "./lease_keeper.ts";
import type { OutgoingVerdict } from "./outbox.ts";
import type { Platform } from "./platform.ts";
import { withResolvers } from "./promises.ts";
import { withDeadline } from "./requests.ts";
import { SharedTimer } from "./shared_timer.ts";

export interface LinkReply {
  readonly settled: readonly SettleResult[];
  readonly claimed: ClaimReply | undefined;
  /** Leases renewed along the way, and what became of each. */
  readonly renewedIds: readonly string[];
  readonly renewed: readonly RenewResult[];
}

const NOTHING: readonly never[] = [];

export class BrokerLink {
  readonly #broker: string;
  readonly #queue: BrokerQueue;
  readonly #requestTimeoutMs: number;
  readonly #timer: SharedTimer;
  /** Whether one request settles, renews and claims. */
  readonly exchanges: boolean;

  constructor(
    platform: Platform,
    broker: string,
    queue: BrokerQueue,
    requestTimeoutMs: number,
    exchanges: boolean,
  ) {
    this.#broker = broker;
    this.#queue = queue;
    this.#requestTimeoutMs = requestTimeoutMs;
    this.exchanges = exchanges;
    this.#timer = new SharedTimer(platform);
  }

  /** No request is waited for any more: those under way never end here. */
  close(): void {
    this.#timer.close();
  }

  /** Whether a lease can be given back by its id alone. */
  get abandons(): boolean {
    return this.#queue.abandon !== undefined;
  }

  /**
   * Settles and claims. With an engine that exchanges this is one request, and the owner's leases that are half-way to their renewal ride on it (but for those it settles wholly); with another it only
   * settles, and nothing is remembered.
   *
   * @param now what the platform's clock has just said.
   * @throws what an adapter throws that does not reject.
   */
  send(
    keeper: LeaseKeeper,
    owner: LeaseOwner,
    taken: readonly OutgoingVerdict[],
    claim: ClaimRequest | undefined,
    remember: string | undefined,
    now: number,
  ): Promise<LinkReply> {
    if (this.exchanges) return this.#exchange(keeper, owner, taken, claim, remember, now);
    const made = (settled: readonly SettleResult[]): LinkReply => {
      this.#assertWhole("settle", settled, taken);
      return { settled, claimed: undefined, renewedIds: NOTHING, renewed: NOTHING };
    };
    return this.#within(0, "settle", this.#queue.settle(taken), made, now);
  }

  /**
   * Claims, and nothing else.
   *
   * @param now what the platform's clock has just said.
   * @throws what an adapter throws that does not reject.
   */
  claim(claim: ClaimRequest, now: number): Promise<ClaimReply> {
    return this.#within(claim.waitMs, "claim", this.#queue.claim(claim), same, now);
  }

  // Async, so that an adapter that throws is one that rejects.
  async renew(leaseIds: readonly string[]): Promise<readonly RenewResult[]> {
    const results = await this.#within(0, "renew", this.#queue.renew(leaseIds), same);
    this.#assertWhole("renew", results, leaseIds);
    return results;
  }

  /** Gives leases back by their ids, where the engine can. */
  async abandon(leaseIds: readonly string[]): Promise<void> {
    if (this.#queue.abandon === undefined) return;
    await this.#within(0, "abandon", this.#queue.abandon(leaseIds), same);
  }

  async #exchange(
    keeper: LeaseKeeper,
    owner: LeaseOwner,
    taken: readonly OutgoingVerdict[],
    claim: ClaimRequest | undefined,
    remember: string | undefined,
    sentAt: number,
  ): Promise<LinkReply> {
    const over = withResolvers<void>();
    const riding = keeper.ride(owner, over.promise, (lease) => endedBy(taken, lease));
    const renewedIds = riding.length === 0 ? NOTHING : riding.map((lease) => lease.id);
    try {
      const exchange = this.#queue.exchange as NonNullable<BrokerQueue["exchange"]>;
      const sent = exchange.call(this.#queue, { settle: taken, renew: renewedIds, claim, remember });
      const reply: ExchangeReply = await this.#within(0, "exchange", sent, same, sentAt);
      this.#assertWhole("exchange", reply.settled, taken);
      this.#assertWhole("exchange", reply.renewed, renewedIds);
      if (claim !== undefined && reply.claimed === undefined) throw this.#partial("exchange");
      keeper.answered(riding, reply.renewed, sentAt);
      return { settled: reply.settled, claimed: reply.claimed, renewedIds, renewed: reply.renewed };
    } catch (error) {
      keeper.failed(riding);
      throw error;
    } finally {
      over.resolve();
    }
  }

  /** An answer that leaves something out says nothing of it: it is as good as none, and what was sent is sent again. */
  #assertWhole(verb: string, answers: readonly unknown[], asked: readonly unknown[]): void {
    if (answers.length !== asked.length) throw this.#partial(verb);
  }

  #partial(verb: string): BrokerError {
    return new BrokerError(
      this.#broker,
      verb,
      `The ${this.#broker} broker answered only a part of what ${verb} asked`,
    );
  }

  #within<T, R>(
    waitMs: number,
    verb: string,
    work: Promise<T>,
    made: (value: T) => R,
    now?: number,
  ): Promise<R> {
    return withDeadline(this.#timer, this.#requestTimeoutMs + waitMs, this.#broker, verb, work, made, now);
  }
}

function same<T>(value: T): T {
  return value;
}

/** Whether a request settles all that is left of a lease. */
function endedBy(taken: readonly OutgoingVerdict[], lease: HeldLease): boolean {
  let settles = 0;
  for (const entry of taken) if (entry.held.lease === lease) settles += 1;
  return settles >= lease.open;
}
