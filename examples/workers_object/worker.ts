/**
 * A Cloudflare Worker that needs no server: each queue is a Durable Object, which keeps the jobs and runs the handlers. `POST /v1/queues/emails/jobs` enqueues; new, delayed and failed
 * jobs wake the object by themselves. How to run and deploy it stands at the head of `wrangler.toml` beside this file.
 *
 * @module
 */
import {
  createWorkersHandler,
  DurableObjectBroker,
  type ObjectNamespace,
  queueObject,
} from "../../runtimes/workers/mod.ts";
import worker from "../worker.ts";

/** The bindings, as `wrangler.toml` has them. */
export interface Env {
  readonly EDDY_QUEUE: ObjectNamespace;
  readonly EDDY_TOKEN: string;
}

/** One object a queue. */
export class EddyQueue extends queueObject<Env>({ definition: worker, plan: "free" }) {}

export default createWorkersHandler<Env>({
  definition: worker,
  broker: (env) => new DurableObjectBroker({ namespace: env.EDDY_QUEUE }),
  token: (env) => env.EDDY_TOKEN,
  plan: "free",
  // The objects run the handlers.
  drain: false,
});
