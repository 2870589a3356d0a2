/** The Redis adapter, against a real Redis behind the development gateway. */
import { startRedisOverHttp } from "../support/gateway.ts";
import { passRedisTime } from "../support/redis_clock.ts";
import { EXPECTED, redisHarness } from "./harnesses.ts";
import { conformance } from "./run.ts";

conformance(
  redisHarness(async () => {
    const engine = await startRedisOverHttp();
    return {
      connect: () => engine.connect(),
      passMs: (ms) => passRedisTime(engine.server, ms),
      stop: () => engine.stop(),
    };
  }),
  EXPECTED.redis,
);
