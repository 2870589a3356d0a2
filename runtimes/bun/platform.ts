/**
 * The Platform for Bun.
 *
 * @module
 */
import type { Platform } from "../../src/platform.ts";
import { processPlatform } from "../process_platform.ts";

/** How many connections Bun's `fetch` opens at a time before it lets further requests wait. */
const FETCH_CONNECTIONS = 256;

/**
 * Makes the Platform for a Bun process.
 *
 * The first SIGTERM or SIGINT calls the functions given to `onStop`; a second one ends the process at once with the exit code a shell
 * would report (143 or 130), unless it is the first one's copy. While no function is registered the signals do what they do by default.
 */
export function bunPlatform(): Platform {
  return processPlatform({
    name: "bun",
    connections: FETCH_CONNECTIONS,
    openWebSocket: (url) => new WebSocket(url),
  });
}
