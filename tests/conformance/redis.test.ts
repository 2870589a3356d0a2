/** The Redis adapter, against a real Redis behind the development gateway. */
import type { Harness } from "../support/conformance.ts";
import { startRedisOverHttp } from "../support/gateway.ts";
import { conformance } from "./run.ts";

const harness: Harness = {
  name: "redis",
  lacks: {
    waits: "a request over HTTP is answered at once",
    simulatedTime: "a real server's clock cannot be moved",
  },
  shortMs: 300,
  async start() {
    const engine = await startRedisOverHttp();
    return {
      connect: () => engine.connect(),
      passMs: (ms) => Bun.sleep(ms),
      stop: () => engine.stop(),
    };
  },
};

conformance(harness, 154);
