/**
 * Opening a broker from its description.
 *
 * @module
 */
import type { Broker } from "../../src/broker.ts";
import type { Platform } from "../../src/platform.ts";
import type { BrokerSpec } from "./broker_spec.ts";

/**
 * Makes the connection that a description names. An adapter is only loaded when it is used. Does no I/O on the network; the queues are opened by whoever
 * uses them.
 */
export async function openBroker(spec: BrokerSpec, platform: Platform): Promise<Broker> {
  switch (spec.kind) {
    case "memory": {
      const { MemoryBroker } = await import("../../adapters/memory.ts");
      return new MemoryBroker({ now: () => platform.now(), wallNow: () => platform.wallNow() });
    }
    default:
      throw new RangeError(`Cannot use the broker: ${spec.kind} is not built yet; use memory:`);
  }
}
