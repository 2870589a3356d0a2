/**
 * From nothing to the first claim, in whatever runtime this is loaded.
 *
 * @module
 */
import { RedisBroker } from "../../adapters/redis/mod.ts";
import { defineWorker, type Platform, queue, startWorker } from "../../src/mod.ts";

export interface FirstClaimParams {
  readonly url: string;
  readonly token: string;
  readonly queue: string;
}

/** Starts a worker; answers once its first claim was answered, with a function that ends it. */
export async function firstClaim(platform: Platform, params: FirstClaimParams): Promise<() => Promise<void>> {
  const broker = new RedisBroker({ url: params.url, token: params.token });
  const claimed = Promise.withResolvers<void>();
  const worker = await startWorker(defineWorker({ queues: [queue(params.queue).handle(async () => {})] }), {
    broker,
    platform,
    on: (event) => {
      if (event.type === "claimed") claimed.resolve();
    },
  });
  await claimed.promise;
  return async () => {
    await worker.stop();
    await broker.close();
  };
}
