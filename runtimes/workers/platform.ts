/**
 * The Platform for Cloudflare Workers, one for each invocation.
 *
 * @module
 */
import type { CancelTimer, Platform, PlatformLimits } from "../../src/platform.ts";
import { type WorkersPlan, type WorkersTrigger, workersLimits } from "./limits.ts";
import type { InvocationContext } from "./types.ts";

/** The longest time `setTimeout` can be set to. */
const LONGEST_TIMEOUT_MS = 2_147_483_647;

export interface WorkersPlatformOptions {
  /** The invocation's `ctx`. */
  readonly ctx: InvocationContext;
  /** The account's plan. Default `"free"`: what keeps its limits keeps the paid plan's. */
  readonly plan?: WorkersPlan | undefined;
  /** What started the invocation. Default `"request"`. */
  readonly trigger?: WorkersTrigger | undefined;
  /** Replaces any of the limits that plan and trigger bring. */
  readonly limits?: Partial<PlatformLimits> | undefined;
}

/**
 * Makes the Platform of an invocation. Does no I/O, starts no timer and asks for no randomness by itself.
 *
 * `clockStopsDuringCpu` is true: in production the clock stands still while code computes and moves at each I/O, a timer included.
 *
 * @throws {RangeError} when a limit cannot be used.
 */
export function workersPlatform(options: WorkersPlatformOptions): Platform {
  const { ctx, plan = "free", trigger = "request" } = options;
  return Object.freeze<Platform>({
    name: "workers",
    now: () => performance.now(),
    wallNow: () => Date.now(),
    setTimer,
    random: () => Math.random(),
    randomId: () => crypto.randomUUID(),
    fetch: (input, init) => fetch(input, init),
    openWebSocket,
    keepAlive: (promise) => keepAlive(ctx, promise),
    // An isolate is ended without a word.
    onStop: () => () => {},
    limits: workersLimits(plan, trigger, options.limits),
    clockStopsDuringCpu: true,
  });
}

function setTimer(ms: number, fn: () => void): CancelTimer {
  let left = Math.max(0, ms);
  let timer: ReturnType<typeof setTimeout>;
  const arm = () => {
    const step = Math.min(left, LONGEST_TIMEOUT_MS);
    left -= step;
    timer = setTimeout(left > 0 ? arm : fn, step);
  };
  arm();
  return () => clearTimeout(timer);
}

/** Frames come as Blobs by default from the compatibility date 2026-03-17 on, whose bytes can only be had later. */
function openWebSocket(url: string): WebSocket {
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  return socket;
}

function keepAlive(ctx: InvocationContext, promise: Promise<unknown>): void {
  const settled = promise.then(
    () => {},
    () => {},
  );
  try {
    ctx.waitUntil(settled);
  } catch {
    // The invocation is over: nothing can be kept any more.
  }
}
