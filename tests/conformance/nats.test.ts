/** The NATS adapter, against a real nats-server with a file store, through its WebSocket listener. */
import { NatsBroker } from "../../adapters/nats/mod.ts";
import { startNats } from "../support/nats_server.ts";
import { EXPECTED, natsHarness } from "./harnesses.ts";
import { conformance } from "./run.ts";

conformance(
  natsHarness(async () => {
    const server = await startNats();
    return {
      connect: () => new NatsBroker({ url: server.url }),
      passMs: (ms) => Bun.sleep(ms),
      stop: () => server.stop(),
    };
  }),
  EXPECTED.nats,
);
