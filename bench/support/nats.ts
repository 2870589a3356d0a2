/**
 * NATS in the benches: a server, its adapter, and whether there is one.
 *
 * @module
 */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Broker } from "../../src/mod.ts";
import { type NatsServer, startNats } from "../../tests/support/nats_server.ts";

const ADAPTER = resolve(import.meta.dir, "../../adapters/nats/mod.ts");

/** Whether Eddy has an adapter for NATS here. */
export function hasNats(): boolean {
  return existsSync(ADAPTER);
}

interface Adapter {
  readonly NatsBroker: new (options: { readonly url: string }) => Broker;
}

export async function openNats(url: string): Promise<Broker> {
  const { NatsBroker } = (await import(ADAPTER)) as Adapter;
  return new NatsBroker({ url });
}

/** A nats-server whose streams are on disk, as an installed one's are. */
export function startNatsServer(): Promise<NatsServer> {
  return startNats();
}
