/**
 * A Worker that serves no HTTP: its cron drains Redis.
 *
 * @module
 */
import { RedisBroker } from "../../../adapters/redis/mod.ts";
import { createCronHandler } from "../../../runtimes/workers/mod.ts";
import { defineWorker, queue } from "../../../src/mod.ts";

interface Env {
  readonly REDIS_URL: string;
  readonly REDIS_TOKEN: string;
}

export default createCronHandler<Env>({
  definition: defineWorker({ queues: [queue("notes").handle(() => {})] }),
  broker: (env) => new RedisBroker({ url: env.REDIS_URL, token: env.REDIS_TOKEN }),
  log: () => {},
});
