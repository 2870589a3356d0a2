/**
 * The Platform port: the runtime behind its shim. The core reads no clock, timer, randomness, environment or fetch but this one's,
 * so the same source runs on every runtime, and under a simulated clock in the tests.
 *
 * @module
 */

/** Ends a timer; ending one that has fired, or twice, does nothing. */
export type CancelTimer = () => void;

/** What one invocation may spend. `Infinity` where the platform sets no limit. */
export interface PlatformLimits {
  /** Wall time, in milliseconds. */
  readonly wallMs: number;
  /** Processor time, in milliseconds. Bounds a drain that says what a job takes of it (`cpuMsPerJob`). */
  readonly cpuMs: number;
  /** Requests the invocation may make (Workers calls them subrequests). */
  readonly requests: number;
  /** Connections open at a time. */
  readonly connections: number;
}

export interface Platform {
  /** `"bun"`, `"deno"`, `"workers"` or `"simulated"`. */
  readonly name: string;
  /** Milliseconds on a clock that never goes back. Its zero means nothing. */
  now(): number;
  /** Unix milliseconds. */
  wallNow(): number;
  /**
   * Calls `fn` once, not before `ms` milliseconds have passed. Under load it may be later, and a runtime that was busy may fire early
   * by its own clock: whoever depends on the time looks at {@linkcode Platform.now} again.
   */
  setTimer(ms: number, fn: () => void): CancelTimer;
  /** A number in [0, 1). */
  random(): number;
  /** A new id of printable ASCII, unique among all workers. */
  randomId(): string;
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  openWebSocket(url: string): WebSocket;
  /** Asks the runtime to stay alive until the promise settles (`waitUntil`). Never rejects, never throws. */
  keepAlive(promise: Promise<unknown>): void;
  /**
   * Calls `fn` when the runtime is asked to end (SIGTERM, SIGINT); never on runtimes without such a thing. Answers a function that takes it back.
   */
  onStop(fn: (reason: string) => void): () => void;
  readonly limits: PlatformLimits;
  /** True where the clock stands still while code computes and moves only at I/O (Workers in production). */
  readonly clockStopsDuringCpu: boolean;
}
