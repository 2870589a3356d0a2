/**
 * How much one queue's claims ask for, and how early: the 250 ms rule or a fixed number, the limits, and what was learned of the link.
 *
 * @module
 */
import type { BrokerLimits } from "./broker.ts";
import { claimAheadInMs } from "./claim_ahead.ts";
import type { Learned } from "./learned.ts";
import type { ResolvedOptions } from "./options.ts";
import { AutoPrefetch, WEIGHT } from "./prefetch.ts";
import { RoundTrips } from "./round_trips.ts";
import { hundredths, type QueueStats } from "./stats.ts";

export class Asking {
  readonly #options: ResolvedOptions;
  readonly #limits: BrokerLimits;
  readonly #rule: AutoPrefetch;
  readonly #trips = new RoundTrips();
  #prefetch = 1;
  #lastAsked = 1;
  #lastFull = false;
  #ownAverageMs: number | undefined;

  constructor(options: ResolvedOptions, limits: BrokerLimits, learned: Learned | undefined) {
    this.#options = options;
    this.#limits = limits;
    this.#rule = new AutoPrefetch(learned?.averageMs, learned?.prefetch);
  }

  /** The moving average of the job time, in milliseconds, begun with what an earlier run learned. */
  get averageMs(): number | undefined {
    return this.#rule.averageMs;
  }

  /** The same of this run's own jobs alone; `undefined` before the first. */
  get ownAverageMs(): number | undefined {
    return this.#ownAverageMs;
  }

  /** The moving average of a claim's round trip, in milliseconds. */
  get roundTripMs(): number | undefined {
    return this.#trips.averageMs;
  }

  /** The slowest of the last round trips, in milliseconds. */
  get slowestTripMs(): number | undefined {
    return this.#trips.slowestMs;
  }

  /** What the last claim was sized to (per slot under `"auto"`). */
  get prefetch(): number {
    return this.#prefetch;
  }

  /** Whether the last claim brought all it asked for: the next one will probably bring some. */
  get lastFull(): boolean {
    return this.#lastFull;
  }

  /** What is told of it. */
  stats(): Pick<QueueStats, "averageMs" | "prefetch" | "roundTripMs"> {
    const told = (ms: number | undefined) => (ms === undefined ? undefined : hundredths(ms));
    return {
      averageMs: told(this.averageMs),
      prefetch: this.#prefetch,
      roundTripMs: told(this.roundTripMs),
    };
  }

  /** A job ran for so many milliseconds. */
  ran(ms: number): void {
    this.#rule.ran(ms);
    this.#ownAverageMs =
      this.#ownAverageMs === undefined ? ms : this.#ownAverageMs + WEIGHT * (ms - this.#ownAverageMs);
  }

  /**
   * How many the next claim asks for, with so many slots to fill and so many deliveries held; 0 when as many are held as the engine hands out. To be called
   * once a claim.
   */
  wanted(slots: number, held: number): number {
    const { prefetch } = this.#options;
    const room = this.#limits.maxInFlight - held;
    if (room < 1) return 0;
    this.#prefetch = prefetch === "auto" ? this.#rule.size() : prefetch;
    const asked = prefetch === "auto" ? this.#prefetch * slots : Math.max(prefetch, slots);
    return Math.min(asked, this.#limits.maxBatch, room);
  }

  /**
   * A claim was answered. With several slots the rule works per slot, so a short claim counts as what came for each of them.
   *
   * @param tookMs its round trip; `undefined` when the engine was asked to wait, which says nothing of the link.
   */
  answered(asked: number, got: number, slots: number, tookMs: number | undefined): void {
    this.#lastAsked = asked;
    this.#lastFull = got >= asked;
    const perSlot = Math.ceil(got / slots);
    if (this.#lastFull) this.#rule.claimed(1, 1);
    else this.#rule.claimed(perSlot + 1, perSlot);
    if (tookMs !== undefined) this.tookRoundTrip(tookMs);
  }

  /** A request that the engine answered at once took so many milliseconds. */
  tookRoundTrip(ms: number): void {
    this.#trips.took(ms);
  }

  /** In how many milliseconds the next claim should go out although no slot is free; `undefined` for not before one is. */
  aheadInMs(waiting: number, running: number, runningForMs: number): number | undefined {
    if (!this.#options.claimAhead) return undefined;
    return claimAheadInMs({
      asked: this.#lastAsked,
      full: this.#lastFull,
      waiting,
      running,
      slots: this.#options.concurrency,
      runningForMs,
      averageMs: this.#rule.averageMs,
      roundTripMs: this.#trips.averageMs,
    });
  }
}
