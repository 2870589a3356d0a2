/**
 * A Cloudflare Worker with Redis: `POST /v1/queues/emails/jobs` enqueues, a cron drains every minute, and, between the crons, a consumer's object does as soon as there is
 * work. Each of the two suffices by itself: leave the object and `consumer` out for crons alone, or set `drain: false` for the object alone.
 *
 * ```sh
 * npx wrangler secret put EDDY_TOKEN          # what callers of the HTTP API send as Bearer token
 * npx wrangler secret put EDDY_BROKER_TOKEN   # the token of Redis over HTTP
 * npx wrangler deploy
 * ```
 *
 * @module
 */
import { RedisBroker } from "../../adapters/redis/mod.ts";
import {
  type ConsumerObjectStub,
  consumerObject,
  createWorkersHandler,
  type ObjectNamespace,
} from "../../runtimes/workers/mod.ts";
import worker from "../worker.ts";

/** The bindings, as `wrangler.toml` has them. */
export interface Env {
  /** The address of Redis over HTTP. */
  readonly EDDY_BROKER: string;
  readonly EDDY_BROKER_TOKEN: string;
  readonly EDDY_TOKEN: string;
  readonly EDDY_CONSUMER: ObjectNamespace;
}

const broker = (env: Env) => new RedisBroker({ url: env.EDDY_BROKER, token: env.EDDY_BROKER_TOKEN });

/** Drains whenever there is work. */
export class EddyConsumer extends consumerObject<Env>({ definition: worker, broker, plan: "free" }) {}

const consumer = ({ EDDY_CONSUMER }: Env) =>
  EDDY_CONSUMER.get(EDDY_CONSUMER.idFromName("consumer")) as ConsumerObjectStub;

export default createWorkersHandler<Env>({
  definition: worker,
  broker,
  consumer,
  token: (env) => env.EDDY_TOKEN,
  plan: "free",
});
