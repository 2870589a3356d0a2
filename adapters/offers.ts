/**
 * What the engines that can do nearly everything offer alike: their capabilities, and the limits of their queues.
 *
 * @module
 */
import type { BrokerLimits, Capability } from "../src/broker.ts";

/** Every capability but `waits`. */
export const ALL_BUT_WAITS: ReadonlySet<Capability> = new Set<Capability>([
  "exchange",
  "abandon",
  "fenced",
  "atomic",
  "delay",
  "priority",
  "dedupe",
  "wake",
  "sizes",
  "peek",
  "clear",
  "redrive",
  "pause",
  "memo",
]);

/** The limits of a queue whose engine sets none but a body's size, in bytes: a thousand jobs a request, any number held. */
export function looseLimits(leaseMs: number, maxBodyBytes: number): BrokerLimits {
  return Object.freeze<BrokerLimits>({
    maxBatch: 1000,
    maxEnqueue: 1000,
    maxInFlight: Infinity,
    maxBodyBytes,
    leaseMs,
    renewable: true,
    exclusive: false,
  });
}
