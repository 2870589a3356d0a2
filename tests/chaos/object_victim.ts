/**
 * A Worker whose queues are Durable Objects, made to be killed: its handlers say what they do to an account outside of workerd before they go on.
 *
 * @module
 */
import {
  createWorkersHandler,
  DurableObjectBroker,
  type ObjectNamespace,
  queueObject,
} from "../../runtimes/workers/mod.ts";
import { defineWorker, type Job, queue } from "../../src/mod.ts";

interface Env {
  readonly EDDY_QUEUE: ObjectNamespace;
  readonly EDDY_TOKEN: string;
}

/** Where the account is kept. */
interface Body {
  readonly account: string;
}

async function note(job: Job<Body>, word: string): Promise<void> {
  await fetch(`${job.body.account}/${word}/${job.queue}/${job.id}`, { method: "POST" });
}

const worker = defineWorker({
  queues: [
    queue<Body>("chaos").handle(
      async (job) => {
        await note(job, "start");
        await note(job, "end");
      },
      // Kills alone must not make a dead letter of an honest job.
      { leaseMs: 1_000, concurrency: 4, maxAttempts: 1_000, backoff: () => 0 },
    ),
    queue<Body>("poison").handle(
      async (job) => {
        // Whoever keeps the account kills workerd now.
        await note(job, "start");
        await new Promise(() => {});
      },
      { leaseMs: 1_000, prefetch: 1, maxAttempts: 3 },
    ),
  ],
});

export class EddyQueue extends queueObject<Env>({ definition: worker, plan: "paid" }) {}

export default createWorkersHandler<Env>({
  definition: worker,
  broker: (env) => new DurableObjectBroker({ namespace: env.EDDY_QUEUE }),
  token: (env) => env.EDDY_TOKEN,
  drain: false,
  plan: "paid",
});
