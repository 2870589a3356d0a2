/**
 * The Platform of runtimes that are processes with signals, timers and `fetch` of their own: what Bun's and Deno's share.
 *
 * @module
 */
import process from "node:process";
import type { Platform, PlatformLimits } from "../src/platform.ts";
import { LONGEST_TIMEOUT_MS, setTimer } from "./long_timer.ts";

/**
 * How long after the first signal the same one again counts as its copy, in milliseconds. On Ctrl-C a terminal signals every process of the command, and launchers
 * (`npm run`) pass on what they got too; nobody presses twice that fast.
 */
const COPY_WITHIN_MS = 250;

const STOP_SIGNALS = { SIGTERM: 15, SIGINT: 2 } as const;
type StopSignal = keyof typeof STOP_SIGNALS;

export interface ProcessPlatformOptions {
  readonly name: string;
  /** How many connections the runtime's `fetch` opens at a time before it lets further requests wait. */
  readonly connections: number;
  readonly openWebSocket: Platform["openWebSocket"];
  /** What one invocation may spend, where the process runs on a platform that limits it. Default: what it likes. */
  readonly limits?: PlatformLimits | undefined;
}

/**
 * Makes a Platform for this process.
 *
 * The first SIGTERM or SIGINT calls the functions given to `onStop`; a second one ends the process at once with the exit code a shell
 * would report (143 or 130), unless it is the first one's copy. While no function is registered the signals do what they do by default.
 */
export function processPlatform(options: ProcessPlatformOptions): Platform {
  const stops = new StopSignals();
  const kept = new KeptAlive();
  return Object.freeze<Platform>({
    name: options.name,
    now: () => performance.now(),
    wallNow: () => Date.now(),
    setTimer,
    random: () => Math.random(),
    randomId: () => crypto.randomUUID(),
    fetch: (input, init) => fetch(input, init),
    openWebSocket: options.openWebSocket,
    keepAlive: (promise) => kept.add(promise),
    onStop: (fn) => stops.add(fn),
    limits: Object.freeze<PlatformLimits>({
      wallMs: Number.POSITIVE_INFINITY,
      cpuMs: Number.POSITIVE_INFINITY,
      requests: Number.POSITIVE_INFINITY,
      ...options.limits,
      connections: Math.min(options.connections, options.limits?.connections ?? Number.POSITIVE_INFINITY),
    }),
    clockStopsDuringCpu: false,
  });
}

/** Hands the process's stop signals to whoever registered. Listens only while somebody has. */
class StopSignals {
  #fns: ((reason: string) => void)[] = [];
  #first: { readonly signal: StopSignal; readonly at: number } | undefined;
  readonly #onSignal = (signal: StopSignal) => {
    const now = performance.now();
    if (this.#first !== undefined) {
      if (signal === this.#first.signal && now - this.#first.at < COPY_WITHIN_MS) return;
      process.exit(128 + STOP_SIGNALS[signal]);
    }
    this.#first = { signal, at: now };
    for (const fn of this.#fns) fn(signal);
  };

  add(fn: (reason: string) => void): () => void {
    if (this.#fns.length === 0) this.#listen(true);
    this.#fns = [...this.#fns, fn];
    let there = true;
    return () => {
      if (!there) return;
      there = false;
      this.#fns = this.#fns.filter((other) => other !== fn);
      if (this.#fns.length === 0) this.#listen(false);
    };
  }

  #listen(on: boolean): void {
    for (const signal of Object.keys(STOP_SIGNALS) as StopSignal[]) {
      if (on) process.on(signal, this.#onSignal);
      else process.off(signal, this.#onSignal);
    }
  }
}

/** Keeps the process alive while promises are pending: a pending promise alone does not. */
class KeptAlive {
  #pending = 0;
  #hold: ReturnType<typeof setInterval> | undefined;

  add(promise: Promise<unknown>): void {
    this.#pending += 1;
    this.#hold ??= setInterval(() => {}, LONGEST_TIMEOUT_MS);
    const settled = () => {
      this.#pending -= 1;
      if (this.#pending > 0) return;
      clearInterval(this.#hold);
      this.#hold = undefined;
    };
    promise.then(settled, settled);
  }
}
