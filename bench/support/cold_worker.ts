/**
 * A Worker that answers once it has made its first claim, or at once where that is all that is asked.
 *
 * @module
 */
import { RedisBroker } from "../../adapters/redis/mod.ts";
import { workersPlatform } from "../../runtimes/workers/platform.ts";
import type { InvocationContext } from "../../runtimes/workers/types.ts";
import { defineWorker, drain, queue } from "../../src/mod.ts";
import type { FirstClaimParams } from "./first_claim.ts";

export default {
  async fetch(request: Request, _env: unknown, ctx: InvocationContext): Promise<Response> {
    const params = (await request.json()) as FirstClaimParams | null;
    if (params === null) return new Response("up");
    const platform = workersPlatform({ ctx, trigger: "request", plan: "free" });
    const broker = new RedisBroker({ url: params.url, token: params.token });
    const claimed = Promise.withResolvers<void>();
    const run = drain(defineWorker({ queues: [queue(params.queue).handle(async () => {})] }), {
      broker,
      platform,
      on: (event) => {
        if (event.type === "claimed") claimed.resolve();
      },
    });
    ctx.waitUntil(run.finally(() => broker.close()));
    await Promise.race([claimed.promise, run]);
    return new Response("claimed");
  },
};
