/**
 * The simulated platform: a virtual clock and seeded randomness. Nothing happens by itself: {@linkcode SimulatedPlatform.run} fires timers in the order of their
 * times, letting all that follows from one settle before the next, so a world of many workers plays the same way each time.
 *
 * @module
 */
import type { CancelTimer, Platform, PlatformLimits } from "../src/platform.ts";

/** A small, well-mixed generator of numbers in [0, 1): the public "mulberry32". */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/**
 * A world that sets or fires so many timers while its clock stands still is going round in a circle: it would spin for ever, and no
 * deadline in simulated time could end it.
 */
const MOST_AT_ONE_INSTANT = 100_000;

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly fn: () => void;
  cancelled: boolean;
}

export interface SimulatedOptions {
  /** Decides all randomness. Default 1. */
  readonly seed?: number;
  /** Unix milliseconds at the start. Default 1,800,000,000,000. */
  readonly wallStart?: number;
  readonly limits?: Partial<PlatformLimits>;
  readonly clockStopsDuringCpu?: boolean;
  /** What `fetch` does. By default it rejects. */
  readonly fetch?: Platform["fetch"];
}

/** Lets everything that is ready to run, run. A macrotask of the real event loop comes after all microtasks. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export class SimulatedPlatform implements Platform {
  readonly name = "simulated";
  readonly limits: PlatformLimits;
  readonly clockStopsDuringCpu: boolean;
  readonly #random: () => number;
  readonly #wallStart: number;
  readonly #fetch: Platform["fetch"];
  readonly #timers: Timer[] = [];
  readonly #stops = new Set<(reason: string) => void>();
  readonly #kept = new Set<Promise<unknown>>();
  #now = 0;
  /** Spent while the clock stood still. */
  #hiddenMs = 0;
  #order = 0;
  /** Timers set and fired since the clock last moved. */
  #atThisInstant = 0;
  #livelock: Error | undefined;

  constructor(options: SimulatedOptions = {}) {
    this.#random = seededRandom(options.seed ?? 1);
    this.#wallStart = options.wallStart ?? 1_800_000_000_000;
    this.#fetch =
      options.fetch ??
      (() => Promise.reject(new TypeError("Cannot fetch: the simulated platform has no network")));
    this.clockStopsDuringCpu = options.clockStopsDuringCpu ?? false;
    this.limits = {
      wallMs: Number.POSITIVE_INFINITY,
      cpuMs: Number.POSITIVE_INFINITY,
      requests: Number.POSITIVE_INFINITY,
      connections: Number.POSITIVE_INFINITY,
      ...options.limits,
    };
  }

  now(): number {
    return this.#now;
  }

  wallNow(): number {
    return this.#wallStart + this.#now;
  }

  setTimer(ms: number, fn: () => void): CancelTimer {
    this.#countAtThisInstant();
    const timer: Timer = { at: this.#now + Math.max(0, ms), order: this.#order++, fn, cancelled: false };
    // Kept sorted: a world has few timers, and the next one is asked for far more often than one is added.
    let index = this.#timers.length;
    while (index > 0 && (this.#timers[index - 1] as Timer).at > timer.at) index -= 1;
    this.#timers.splice(index, 0, timer);
    return () => {
      timer.cancelled = true;
    };
  }

  random(): number {
    return this.#random();
  }

  randomId(): string {
    const part = () =>
      Math.floor(this.#random() * 36 ** 6)
        .toString(36)
        .padStart(6, "0");
    return `${part()}${part()}${part()}`;
  }

  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    return this.#fetch(input, init);
  }

  openWebSocket(): WebSocket {
    throw new TypeError("Cannot open a WebSocket: the simulated platform has no network");
  }

  keepAlive(promise: Promise<unknown>): void {
    this.#kept.add(promise);
    const forget = () => this.#kept.delete(promise);
    promise.then(forget, forget);
  }

  onStop(fn: (reason: string) => void): () => void {
    this.#stops.add(fn);
    return () => this.#stops.delete(fn);
  }

  /** Asks the world to end, as a signal would. */
  requestStop(reason = "simulated stop"): void {
    for (const fn of [...this.#stops]) fn(reason);
  }

  /** Promises given to {@linkcode SimulatedPlatform.keepAlive} and not settled. */
  get keptAlive(): number {
    return this.#kept.size;
  }

  /** Timers that are set. */
  get timers(): number {
    return this.#timers.filter((timer) => !timer.cancelled).length;
  }

  /** Time that passes while code computes: moves the clock without firing timers; at once, or, where it stands still meanwhile, before the next timer fires. */
  spend(ms: number): void {
    if (this.clockStopsDuringCpu) this.#hiddenMs += ms;
    else this.#moveTo(this.#now + ms);
  }

  /** A promise that resolves after `ms` of simulated time. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.setTimer(ms, resolve);
    });
  }

  /**
   * Plays until `until` settles, and answers what it resolved to.
   *
   * @param maxMs simulated time it may take. Default one hour.
   * @throws {Error} when nothing is left that could happen, the time is over, or the world goes round in a circle without time passing.
   */
  async run<T>(until: Promise<T> | T, maxMs = 3_600_000): Promise<T> {
    const end = this.#now + maxMs;
    let done = false;
    const finished = Promise.resolve(until).then(
      (value) => {
        done = true;
        return { value };
      },
      (error: unknown) => {
        done = true;
        return { error };
      },
    );
    for (;;) {
      await this.#settle();
      if (done) break;
      if (!this.#fireNext(end)) {
        throw new Error(
          this.timers === 0
            ? "The simulated world stands still: no timer is set and what was waited for did not happen"
            : `The simulated world went on for ${maxMs} ms and what was waited for did not happen`,
        );
      }
    }
    const result = await finished;
    if ("error" in result) throw result.error;
    return result.value;
  }

  /**
   * Plays for `ms` of simulated time.
   *
   * @throws {Error} when the world goes round in a circle without time passing.
   */
  async pass(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      await this.#settle();
      if (!this.#fireNext(end)) break;
    }
    this.#moveTo(end);
    await this.#settle();
  }

  async #settle(): Promise<void> {
    await settle();
    if (this.#livelock !== undefined) throw this.#livelock;
  }

  #moveTo(at: number): void {
    if (at <= this.#now) return;
    this.#now = at;
    this.#atThisInstant = 0;
  }

  #countAtThisInstant(): void {
    this.#atThisInstant += 1;
    if (this.#atThisInstant <= MOST_AT_ONE_INSTANT) return;
    // Thrown here, it ends a circle that never comes to rest; whoever catches it, the one who plays learns of it.
    this.#livelock ??= new Error(
      `The simulated world goes round in a circle: ${MOST_AT_ONE_INSTANT} timers were set or fired at ${this.#now} ms and the clock did not move`,
    );
    throw this.#livelock;
  }

  #fireNext(end: number): boolean {
    this.#moveTo(this.#now + this.#hiddenMs);
    this.#hiddenMs = 0;
    for (;;) {
      const timer = this.#timers[0];
      if (timer === undefined || timer.at > end) return false;
      this.#timers.shift();
      if (timer.cancelled) continue;
      this.#moveTo(timer.at);
      this.#countAtThisInstant();
      timer.fn();
      return true;
    }
  }
}
