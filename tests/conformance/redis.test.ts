/** The Redis adapter, against a real Redis behind the development gateway. Its clock is real, but deadlines are moved, not awaited. */
import type { Harness } from "../support/conformance.ts";
import { startRedisOverHttp } from "../support/gateway.ts";
import { passRedisTime } from "../support/redis_clock.ts";
import { conformance } from "./run.ts";

const harness: Harness = {
  name: "redis",
  lacks: {
    waits: "a request over HTTP is answered at once",
  },
  shortMs: 10_000,
  async start() {
    const engine = await startRedisOverHttp();
    return {
      connect: () => engine.connect(),
      passMs: (ms) => passRedisTime(engine.server, ms),
      stop: () => engine.stop(),
    };
  },
};

conformance(harness, 155);
