/**
 * The requests of one queue loop: what is under way, what failed, and until when to hold back. It sends what the loop decided on and
 * hands the answers back; it decides nothing itself.
 *
 * @module
 */
import { brokerBackoffMs } from "./backoff.ts";
import type { ClaimReply, ClaimRequest, SettleResult } from "./broker.ts";
import type { BrokerLink, LinkReply } from "./broker_link.ts";
import { BrokerRefusedError } from "./errors.ts";
import type { HeldLease, LeaseOwner } from "./held.ts";
import type { LeaseKeeper } from "./lease_keeper.ts";
import type { Outbox, OutgoingVerdict } from "./outbox.ts";
import type { Platform } from "./platform.ts";
import { asError } from "./requests.ts";

/** A claim decided on, on its way, or one whose answer never came. */
export interface PendingClaim {
  readonly leaseId: string;
  readonly max: number;
  /** The slots it is to fill. */
  readonly slots: number;
  /** How long the engine may wait for a first job, in milliseconds. */
  readonly waitMs: number;
  /** Whether it failed before, so that it may have taken jobs whose names never arrived. */
  resent: boolean;
}

/** What the loop is told. None is called any more after {@linkcode Traffic.close}. */
export interface TrafficEvents {
  received(claim: PendingClaim, reply: ClaimReply, sentAt: number): void;
  settled(taken: readonly OutgoingVerdict[], results: readonly SettleResult[]): void;
  /** How long a request took that only settled, in milliseconds. */
  roundTrip(ms: number): void;
  renewed(leaseIds: readonly string[], results: readonly ("held" | "lost")[]): void;
  /** A verdict that can count no more: its lease is over. */
  lost(entry: OutgoingVerdict): void;
  failed(verb: string, error: Error, retryInMs: number): void;
  refused(error: BrokerRefusedError): void;
  /** A request ended: look again. */
  wake(): void;
}

export interface TrafficOptions {
  readonly platform: Platform;
  readonly link: BrokerLink;
  readonly keeper: LeaseKeeper;
  readonly owner: LeaseOwner;
  readonly outbox: Outbox;
  /** What to leave with the queue, along with verdicts. */
  readonly memo: () => string | undefined;
  readonly events: TrafficEvents;
}

/** The longest pause after a failure. A stop has little time: its verdicts are tried again sooner than others. */
const LONGEST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_STOPPING_MS = 1_000;

const NOTHING: readonly never[] = [];

export class Traffic {
  readonly #options: TrafficOptions;
  #claiming = false;
  #settling = false;
  #abandoning = false;
  #unanswered: PendingClaim | undefined;
  #endWait: AbortController | undefined;
  #failures = 0;
  /** A clock's zero means nothing: it may show less than that for long. */
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #stopping = false;
  #closed = false;

  constructor(options: TrafficOptions) {
    this.#options = options;
  }

  /** Whether a claim is on its way. */
  get claiming(): boolean {
    return this.#claiming;
  }

  /** Whether verdicts are on their way by a request of their own. */
  get settling(): boolean {
    return this.#settling;
  }

  /** Whether any request is on its way. */
  get busy(): boolean {
    return this.#claiming || this.#settling || this.#abandoning;
  }

  /** The claim on its way, or the one whose answer never came: it may hold jobs here that nobody knows of. */
  get unanswered(): PendingClaim | undefined {
    return this.#unanswered;
  }

  /** Until when nothing is sent, after a failure. */
  get pausedUntil(): number {
    return this.#pausedUntil;
  }

  /** Sends a claim; with an engine that exchanges, all waiting verdicts ride on it. `now` is what the clock has just said. */
  claim(claim: PendingClaim, now: number): void {
    const { link, outbox, events } = this.#options;
    this.#claiming = true;
    this.#unanswered = claim;
    const { leaseId, max, waitMs } = claim;
    // The same one for claim after claim: most are answered without it, and to make one costs more than all else that a claim does here.
    if (waitMs > 0) this.#endWait ??= new AbortController();
    const signal = waitMs > 0 ? this.#endWait?.signal : undefined;
    const request: ClaimRequest =
      signal === undefined ? { leaseId, max, waitMs } : { leaseId, max, waitMs, signal };
    let sentAt = now;
    const sending = (at: number) => {
      sentAt = at;
    };
    const sent = link.exchanges
      ? this.#exchange(outbox.take(), request, now, sending)
      : this.#claimOnly(request, now);
    sent.then(
      (claimed) => {
        this.#claiming = false;
        if (this.#closed) return;
        if (claimed !== undefined) {
          this.#unanswered = undefined;
          this.#failures = 0;
          events.received(claim, claimed, sentAt);
        } else if (!claim.resent) {
          // It was held back until it was too late to send it.
          this.#unanswered = undefined;
        }
        events.wake();
      },
      (error: unknown) => {
        this.#claiming = false;
        claim.resent = true;
        this.#failed(link.exchanges ? "exchange" : "claim", error);
      },
    );
  }

  /** Sends the waiting verdicts by a request of their own. `now` is what the clock has just said. */
  settle(now: number): void {
    this.#settling = true;
    const { platform, link, events } = this.#options;
    let sentAt: number | undefined;
    this.#exchange(this.#options.outbox.take(), undefined, now, (at) => {
      sentAt = at;
    }).then(
      () => {
        this.#settling = false;
        this.#failures = 0;
        if (this.#closed) return;
        // Where claims wait for work, they say nothing of the link; this does.
        if (!link.exchanges && sentAt !== undefined) events.roundTrip(platform.now() - sentAt);
        events.wake();
      },
      (error: unknown) => {
        this.#settling = false;
        this.#failed("settle", error);
      },
    );
  }

  /** Gives back whatever the unanswered claim took, by its lease's id. */
  abandon(): void {
    const claim = this.#unanswered;
    if (claim === undefined) return;
    this.#abandoning = true;
    this.#options.link.abandon([claim.leaseId]).then(
      () => {
        this.#abandoning = false;
        this.#unanswered = undefined;
        if (!this.#closed) this.#options.events.wake();
      },
      (error: unknown) => {
        this.#abandoning = false;
        this.#failed("abandon", error);
      },
    );
  }

  /** Ends an engine's wait for a first job: the claim answers with what it has. */
  endWait(): void {
    if (!this.#claiming) return;
    this.#endWait?.abort();
    this.#endWait = undefined;
  }

  /** The loop is stopping: what has to be sent again is sent again soon, however long the broker was away. */
  stopping(): void {
    if (this.#stopping) return;
    this.#stopping = true;
    this.endWait();
    const { platform } = this.#options;
    this.#failures = 0;
    this.#pausedUntil = Math.min(this.#pausedUntil, platform.now() + this.#pauseMs());
  }

  /** The unanswered claim is given up: whatever it took comes back when its lease runs out. */
  forgetUnanswered(): void {
    if (!this.#claiming) this.#unanswered = undefined;
  }

  /**
   * Ends all: answers that come later change nothing and tell nothing. Never rejects.
   *
   * @param givesBack whether a claim without an answer is given back, once.
   */
  async close(givesBack: boolean): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const claim = this.#unanswered;
    if (!givesBack || claim === undefined || this.#abandoning || !this.#options.link.abandons) return;
    try {
      await this.#options.link.abandon([claim.leaseId]);
    } catch {
      // Its lease runs out by itself.
    }
  }

  /** Sends a claim without verdicts; answers `undefined` when none was sent. Nothing has to be awaited before, and little is behind. */
  #claimOnly(claim: ClaimRequest, now: number): Promise<ClaimReply | undefined> {
    if (this.#closed || this.#stopping) return Promise.resolve(undefined);
    try {
      return this.#options.link.claim(claim, now);
    } catch (error) {
      // An adapter that throws is one that rejects.
      return Promise.reject(error);
    }
  }

  /**
   * Sends verdicts and a claim; answers `undefined` when no claim was sent. A renewal under way is awaited before its lease is settled, so that the two never race at the broker; and what
   * was lost meanwhile, or by a clock that no timer has looked at, is not sent: not every engine would notice.
   */
  async #exchange(
    taken: readonly OutgoingVerdict[],
    claim: ClaimRequest | undefined,
    at: number,
    sending: (now: number) => void,
  ): Promise<ClaimReply | undefined> {
    const { platform, link, keeper, owner, outbox, memo, events } = this.#options;
    let now = at;
    // Another may have begun while one was awaited.
    for (let under = renewalsOf(taken); under.length > 0; under = renewalsOf(taken)) {
      await Promise.all(under);
      now = platform.now();
    }
    const sent = this.#stillHeld(taken, now);
    if (this.#closed || (sent.length === 0 && claim === undefined)) return undefined;
    if (claim !== undefined && this.#stopping) {
      for (const entry of outbox.putBack(sent)) events.lost(entry);
      return undefined;
    }
    sending(now);
    let reply: LinkReply;
    try {
      reply = await link.send(keeper, owner, sent, claim, sent.length > 0 ? memo() : undefined, now);
    } catch (error) {
      const over = outbox.putBack(sent);
      if (!this.#closed) for (const entry of over) events.lost(entry);
      throw error;
    }
    outbox.answered(sent);
    if (!this.#closed) {
      events.settled(sent, reply.settled);
      events.renewed(reply.renewedIds, reply.renewed);
    }
    return reply.claimed;
  }

  #stillHeld(taken: readonly OutgoingVerdict[], now: number): readonly OutgoingVerdict[] {
    const { keeper, outbox, events } = this.#options;
    let over: Set<HeldLease> | undefined;
    let last: HeldLease | undefined;
    for (const { held } of taken) {
      // A batch's verdicts mostly share one lease.
      if (held.lease === last) continue;
      last = held.lease;
      if (!keeper.expired(last, now)) continue;
      over ??= new Set();
      over.add(last);
    }
    if (over === undefined) return taken;
    const lost = over;
    const dropped = taken.filter(({ held }) => lost.has(held.lease));
    outbox.answered(dropped);
    if (!this.#closed) for (const entry of dropped) events.lost(entry);
    return taken.filter(({ held }) => !lost.has(held.lease));
  }

  #failed(verb: string, thrown: unknown): void {
    if (this.#closed) return;
    const { platform, events } = this.#options;
    const error = asError(thrown);
    if (error instanceof BrokerRefusedError) return events.refused(error);
    this.#failures += 1;
    const retryInMs = this.#pauseMs();
    this.#pausedUntil = platform.now() + retryInMs;
    events.failed(verb, error, retryInMs);
    events.wake();
  }

  #pauseMs(): number {
    const longestMs = this.#stopping ? LONGEST_PAUSE_STOPPING_MS : LONGEST_PAUSE_MS;
    return brokerBackoffMs(Math.max(1, this.#failures), this.#options.platform.random(), longestMs);
  }
}

/** The renewals under way of the leases that these verdicts are of; mostly none. */
function renewalsOf(taken: readonly OutgoingVerdict[]): readonly Promise<void>[] {
  let renewals: Set<Promise<void>> | undefined;
  for (const { held } of taken) {
    const { renewing } = held.lease;
    if (renewing === undefined) continue;
    renewals ??= new Set();
    renewals.add(renewing);
  }
  return renewals === undefined ? NOTHING : [...renewals];
}
