/**
 * The Platform for Cloudflare Workers, one for each invocation.
 *
 * @module
 */
import type { Platform, PlatformLimits } from "../../src/platform.ts";
import { setTimer } from "../long_timer.ts";
import { type WorkersPlan, type WorkersTrigger, workersLimits } from "./limits.ts";
import type { InvocationContext } from "./types.ts";

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
