/**
 * One machine of a simulated world: a process with a clock of its own, which can die, freeze, and compute. It lives on the world's platform,
 * whose clock is the broker's.
 *
 * @module
 */
import type { SimulatedPlatform } from "../../runtimes/simulated.ts";
import type { CancelTimer, Platform, PlatformLimits } from "../../src/platform.ts";
import { Dice } from "./dice.ts";
import type { ClockPlan } from "./plan.ts";

const NO_LIMITS: PlatformLimits = Object.freeze({
  wallMs: Number.POSITIVE_INFINITY,
  cpuMs: Number.POSITIVE_INFINITY,
  requests: Number.POSITIVE_INFINITY,
  connections: Number.POSITIVE_INFINITY,
});

export class Machine implements Platform {
  readonly name = "simulated";
  readonly limits = NO_LIMITS;
  readonly clockStopsDuringCpu = false;
  /** Whose it is, and which one of a row: `worker0.2`. */
  readonly label: string;
  readonly dice: Dice;
  readonly #base: SimulatedPlatform;
  readonly #clock: ClockPlan;
  readonly #rate: number;
  /** Requests that handlers made. */
  fetches = 0;
  #alive = true;
  #ids = 0;
  /** While it computes, its own clock runs ahead of the world's. */
  #computingUntil = 0;
  #pausedUntil = 0;
  readonly #pauses: [from: number, to: number][] = [];

  constructor(base: SimulatedPlatform, label: string, seed: number, clock: ClockPlan) {
    this.label = label;
    this.dice = new Dice(seed, `machine ${label}`);
    this.#base = base;
    this.#clock = clock;
    this.#rate = 1 + clock.driftPpm / 1_000_000;
  }

  /** Whether its timers may fire before their time: then it may give a request up sooner than anybody outside can tell. */
  get hasEarlyTimers(): boolean {
    return this.#clock.early > 0;
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** The world's time at which what it does now happens. */
  trueNow(): number {
    return Math.max(this.#base.now(), this.#computingUntil);
  }

  /** How much later than the world's clock shows what it does now happens. */
  lagMs(): number {
    return this.trueNow() - this.#base.now();
  }

  now(): number {
    return this.#clock.skewMs + this.trueNow() * this.#rate;
  }

  wallNow(): number {
    return 1_800_000_000_000 + Math.floor(this.now());
  }

  setTimer(ms: number, fn: () => void): CancelTimer {
    // A runtime's timers count in whole milliseconds, and may fire early after the processor was busy.
    let wait = ms <= 0 ? 0 : Math.max(1, Math.ceil(ms / this.#rate));
    if (this.#clock.early > 0 && wait > 1 && this.dice.chance(this.#clock.early)) {
      wait = this.dice.whole(1, wait);
    }
    let cancelled = false;
    this.#later(wait, () => {
      if (!cancelled) fn();
    });
    return () => {
      cancelled = true;
    };
  }

  /** Something arrives from outside after `ms` of the world's time. */
  arrives(ms: number, fn: () => void): void {
    this.#later(ms, fn);
  }

  random(): number {
    return this.dice.next();
  }

  randomId(): string {
    this.#ids += 1;
    return `${this.label}-${this.#ids}`;
  }

  fetch(_input: string | URL | Request, init?: RequestInit): Promise<Response> {
    this.fetches += 1;
    return new Promise((resolve, reject) => {
      const { signal } = init ?? {};
      const fail = () => reject(signal?.reason);
      if (signal?.aborted) return fail();
      signal?.addEventListener("abort", fail);
      this.setTimer(this.dice.whole(1, 40), () => resolve(new Response("ok")));
    });
  }

  openWebSocket(): WebSocket {
    throw new TypeError("Cannot open a WebSocket: a simulated machine has no network");
  }

  keepAlive(promise: Promise<unknown>): void {
    promise.catch(() => {});
  }

  onStop(): () => void {
    return () => {};
  }

  /** Ends it: no timer of it fires any more, nothing arrives any more. */
  kill(): void {
    this.#alive = false;
  }

  /** Nothing of it runs for so long. */
  freeze(ms: number): void {
    this.#pause(this.#base.now(), this.#base.now() + ms);
  }

  /** What runs now takes so long, and nothing else of it runs meanwhile. */
  compute(ms: number): void {
    const from = this.trueNow();
    this.#computingUntil = from + ms;
    this.#pause(from, from + ms);
  }

  /** Whether it stands still, or has only just stopped doing so. */
  get isPaused(): boolean {
    return this.#base.now() <= this.#pausedUntil + 3;
  }

  /** How long it stood still between two times of the world, in milliseconds. */
  pausedBetween(from: number, to: number): number {
    let sum = 0;
    for (const [start, end] of this.#pauses) sum += Math.max(0, Math.min(end, to) - Math.max(start, from));
    return sum;
  }

  #pause(from: number, to: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, to);
    // What was due meanwhile runs a little later still, in any order.
    this.#pauses.push([from, to + 3]);
  }

  #later(ms: number, fn: () => void): void {
    this.#base.setTimer(this.lagMs() + ms, () => this.#enter(fn));
  }

  #enter(fn: () => void): void {
    if (!this.#alive) return;
    const wait = this.#pausedUntil - this.#base.now();
    if (wait > 0) this.#base.setTimer(wait + this.dice.whole(0, 2), () => this.#enter(fn));
    else fn();
  }
}
