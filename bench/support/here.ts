/**
 * What a contender needs of the runtime it is in, so that the same one runs on Bun and on Deno.
 *
 * @module
 */
import { setImmediate } from "node:timers";
import type { Platform } from "../../src/mod.ts";

/** Deno's collector, where it was started with `--v8-flags=--expose-gc`. */
const scope = globalThis as {
  readonly Bun?: unknown;
  readonly gc?: (options: { readonly type: "minor" }) => void;
};

/** Modules that only Deno's own check of types knows the names of: TypeScript is kept from following them. */
const ON_DENO: string = "../../runtimes/deno/platform.ts";
const DENO_SOCKET: string = "../../runtimes/deno/websocket.ts";

/** This runtime's platform. */
export async function herePlatform(): Promise<Platform> {
  if (scope.Bun !== undefined) return (await import("../../runtimes/bun/platform.ts")).bunPlatform();
  const { denoPlatform } = (await import(ON_DENO)) as { denoPlatform(): Platform };
  return denoPlatform();
}

/**
 * Gives every client of this process the runtime's best WebSocket. Deno's own leaves Nagle's algorithm on, by which the second of two messages waits some 40 ms: the wait, not the
 * client, would be measured.
 */
export async function useSteadyWebSocket(): Promise<void> {
  if (scope.Bun !== undefined) return;
  const { DenoWebSocket } = (await import(DENO_SOCKET)) as { DenoWebSocket: unknown };
  (globalThis as { WebSocket: unknown }).WebSocket = DenoWebSocket;
}

/**
 * Collects what an earlier run left, so that the next one does not pay for it. On Deno only what is young: V8 holds the shapes of objects weakly, so that collecting
 * everything while no worker is there would throw away the very code that the run before was to warm up.
 */
export function collectGarbage(): void {
  if (scope.Bun !== undefined) Bun.gc(true);
  else scope.gc?.({ type: "minor" });
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Resolves when the event loop has gone round once. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
