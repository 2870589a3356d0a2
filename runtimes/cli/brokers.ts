/**
 * Opening a broker from its description.
 *
 * @module
 */
import type { Broker } from "../../src/broker.ts";
import type { Platform } from "../../src/platform.ts";
import type { BrokerSpec } from "./broker_spec.ts";

/**
 * Makes the connection that a description names. An adapter is only loaded when it is used. Does no I/O; queues are opened by whoever uses them.
 *
 * @param onWarning is told what the broker could not check about the engine. By default a line on standard error.
 */
export async function openBroker(
  spec: BrokerSpec,
  platform: Platform,
  onWarning: (text: string) => void = (text) => console.error(text),
): Promise<Broker> {
  switch (spec.kind) {
    case "memory": {
      const { MemoryBroker } = await import("../../adapters/memory.ts");
      return new MemoryBroker({ now: () => platform.now(), wallNow: () => platform.wallNow() });
    }
    case "sqlite": {
      const { SqliteBroker } = await import("../../adapters/sqlite/mod.ts");
      const { bunSqlite } = await import("../../adapters/sqlite/bun_driver.ts");
      return new SqliteBroker({ database: bunSqlite({ file: spec.file }), wallNow: () => platform.wallNow() });
    }
    case "redis": {
      const { RedisBroker } = await import("../../adapters/redis/mod.ts");
      return new RedisBroker({ url: spec.url, token: spec.token, onWarning });
    }
  }
}
