/**
 * A Worker for the tests of a consumer's object that nothing but enqueues wake: its crons drain only when they are named `drain`.
 *
 * @module
 */
import { RedisBroker } from "../../../adapters/redis/mod.ts";
import {
  type ConsumerObjectStub,
  consumerObject,
  createWorkersHandler,
  type InvocationContext,
  type ObjectNamespace,
  type ScheduledEvent,
} from "../../../runtimes/workers/mod.ts";
import { defineWorker, queue } from "../../../src/mod.ts";
import { consumerRoute } from "./consumer_routes.ts";

interface Env {
  readonly REDIS_URL: string;
  readonly REDIS_TOKEN: string;
  readonly SINK_URL: string;
  readonly EDDY_TOKEN: string;
  readonly CONSUMER: ObjectNamespace;
}

const calls = queue("calls");

const worker = (env: Env) =>
  defineWorker({
    queues: [
      calls.handle(async (job) => {
        const response = await job.fetch(`${env.SINK_URL}/${job.id}`);
        await response.text();
      }),
    ],
  });

const broker = (env: Env) => new RedisBroker({ url: env.REDIS_URL, token: env.REDIS_TOKEN });

export class Consumer extends consumerObject<Env>({ definition: worker, broker, log: () => {} }) {}

const consumer = (env: Env) => env.CONSUMER.get(env.CONSUMER.idFromName("one")) as ConsumerObjectStub;

const options = { definition: worker, broker, consumer, token: (env: Env) => env.EDDY_TOKEN, log: () => {} };
const handler = createWorkersHandler<Env>({ ...options, drain: false });
const draining = createWorkersHandler<Env>(options);

export default {
  async fetch(request: Request, env: Env, ctx: InvocationContext): Promise<Response> {
    const { pathname } = new URL(request.url);
    switch (pathname) {
      case "/test/produce":
        return Response.json(await handler.produce(env, ctx, (producer) => producer.enqueue(calls, null)));
      default:
        return (
          (await consumerRoute(pathname, () => consumer(env))) ?? (await handler.fetch(request, env, ctx))
        );
    }
  },
  async scheduled(event: ScheduledEvent, env: Env, ctx: InvocationContext): Promise<void> {
    await (event.cron === "drain" ? draining : handler).scheduled(event, env, ctx);
  },
};
