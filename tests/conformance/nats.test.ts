/** The NATS adapter, against a real nats-server with a file store, through its WebSocket listener. */
import { NatsBroker } from "../../adapters/nats/mod.ts";
import type { Harness } from "../support/conformance.ts";
import { startNats } from "../support/nats_server.ts";
import { conformance } from "./run.ts";

const harness: Harness = {
  name: "nats",
  lacks: {
    exchange: "JetStream has no request that settles and hands out at once",
    wake: "its claims wait",
    memo: "a memo travels with exchanges",
    fenced: "JetStream knows deliveries, not leases, and takes any ack of them",
    atomic: "JetStream takes messages in one by one",
    simulatedTime: "a real server's clock cannot be moved",
  },
  shortMs: 700,
  async start() {
    const server = await startNats();
    return {
      connect: () => new NatsBroker({ url: server.url }),
      passMs: (ms) => Bun.sleep(ms),
      stop: () => server.stop(),
    };
  },
};

conformance(harness, 135);
