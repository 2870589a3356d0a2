/**
 * Opening a broker from its description, on Deno.
 *
 * @module
 */
import type { Broker } from "../../src/broker.ts";
import type { Platform } from "../../src/platform.ts";
import type { BrokerSpec } from "../cli/broker_spec.ts";
import { connectBroker } from "../cli/brokers.ts";
import { openSqlite } from "./shell.ts";

/**
 * Makes the connection that a description names. An adapter is only loaded when it is used. Does no I/O; queues are opened by whoever uses them.
 *
 * @param onWarning is told what the broker could not check about the engine. By default a line on standard error.
 */
export function openBroker(
  spec: BrokerSpec,
  platform: Platform,
  onWarning: (text: string) => void = (text) => console.error(text),
): Promise<Broker> {
  return connectBroker(spec, { platform, sqlite: openSqlite }, onWarning);
}
