/**
 * The Platform for Deno.
 *
 * @module
 */
import type { Platform, PlatformLimits } from "../../src/platform.ts";
import { processPlatform } from "../process_platform.ts";
import { DenoWebSocket } from "./websocket.ts";

export interface DenoPlatformOptions {
  /** What one invocation may spend: `denoDeployLimits(…)` on Deno Deploy. Default: no limits. */
  readonly limits?: PlatformLimits | undefined;
}

/**
 * Makes the Platform for a Deno process. Needs no permission but that of what is done with it (`fetch` needs `--allow-net`).
 *
 * The first SIGTERM or SIGINT calls the functions given to `onStop`; a second one ends the process at once with the exit code a shell
 * would report (143 or 130), unless it is the first one's copy. While no function is registered the signals do what they do by default.
 */
export function denoPlatform(options: DenoPlatformOptions = {}): Platform {
  return processPlatform({
    limits: options.limits,
    name: "deno",
    // Deno's fetch opens as many as it is asked for.
    connections: Number.POSITIVE_INFINITY,
    openWebSocket: (url) => new DenoWebSocket(url) as unknown as WebSocket,
  });
}
