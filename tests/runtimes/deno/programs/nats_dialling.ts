/** Tells, on Deno, how each try to connect failed: over our WebSocket, and over the runtime's own. */
import process from "node:process";
import { NatsBroker, type NatsBrokerOptions, NatsConnectError } from "../../../../adapters/nats/mod.ts";
import { DenoWebSocket } from "../../../../runtimes/deno/websocket.ts";
import type { QueueSettings } from "../../../../src/mod.ts";

const { cases, settings } = JSON.parse(process.argv[2] as string) as {
  cases: NatsBrokerOptions[];
  settings: QueueSettings;
};

async function failure(options: NatsBrokerOptions): Promise<{ kind: string; message: string }> {
  const broker = new NatsBroker(options);
  try {
    await broker.queue("q", settings).open();
    return { kind: "none", message: "" };
  } catch (error) {
    const { message, cause } = error as Error;
    return { kind: cause instanceof NatsConnectError ? cause.kind : "no cause", message };
  } finally {
    await broker.close();
  }
}

const told: unknown[] = [];
for (const [socket, openWebSocket] of [
  ["ours", (url: string) => new DenoWebSocket(url) as unknown as WebSocket],
  ["its own", (url: string) => new WebSocket(url)],
] as const) {
  for (const options of cases) told.push({ socket, ...(await failure({ ...options, openWebSocket })) });
}
console.log(JSON.stringify(told));
process.exit(0);
