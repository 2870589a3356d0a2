/**
 * A Cloudflare Worker with Redis: `POST /v1/queues/emails/jobs` enqueues, a cron drains every minute, and a consumer's object does as soon as there is
 * work. Each of the two suffices by itself. For crons alone, leave the object and `consumer` out. For the object alone, set `drain: false` and leave the cron out: the first
 * enqueue through this Worker starts it. Where jobs come past this Worker only, it is started by a cron, or by a call of its `start`.
 *
 * How to run and deploy it stands at the head of `wrangler.toml` beside this file.
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
