/**
 * Starts a Worker of these tests that consumes from a broker elsewhere, under the limits of the free plan.
 *
 * @module
 */
import { resolve } from "node:path";
import type { RedisOverHttp } from "../../support/gateway.ts";
import { Workerd, type WorkerdOptions } from "../../support/workerd.ts";

/** What the Worker's HTTP API asks for. */
export const TOKEN = "test-token";
/** How many requests one invocation of the free plan may make. */
export const FREE_REQUESTS = 50;

/** The bindings that lead to a Redis. */
export function toRedis({ gateway }: RedisOverHttp, token = gateway.token): Record<string, string> {
  return { REDIS_URL: gateway.url, REDIS_TOKEN: token };
}

/** Starts one of the files here, with a consumer's object, the bindings to a broker, and a sink that its handlers call. */
export function startConsuming(
  file: "remote_worker.ts" | "no_cron_worker.ts",
  broker: Readonly<Record<string, string>>,
  sink: Bun.Server<undefined>,
  more: Partial<WorkerdOptions> = {},
): Promise<Workerd> {
  return Workerd.start({
    entry: resolve(import.meta.dir, file),
    bindings: { ...broker, SINK_URL: sink.url.origin, EDDY_TOKEN: TOKEN },
    objects: { CONSUMER: "Consumer" },
    rules: { requests: FREE_REQUESTS, connections: 6, frozenClock: true },
    ...more,
  });
}
