import { MemoryBroker } from "../../adapters/memory.ts";
import type { Harness } from "../support/conformance.ts";
import { conformance } from "./run.ts";

const harness: Harness = {
  name: "memory",
  lacks: { waits: "its claims answer at once" },
  shortMs: 1000,
  async start() {
    let nowMs = 0;
    const engine = new MemoryBroker({ now: () => nowMs, wallNow: () => 1_700_000_000_000 + nowMs });
    return {
      connect: () => engine.connect(),
      async passMs(ms) {
        nowMs += ms;
      },
      async stop() {},
    };
  },
};

conformance(harness, 155);
