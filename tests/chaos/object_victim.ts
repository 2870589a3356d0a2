/**
 * A Worker whose queues are Durable Objects, made to be killed: it says what it does to each job to an account outside of workerd, its handlers before they go on.
 *
 * @module
 */
import {
  createWorkersHandler,
  DurableObjectBroker,
  type ObjectNamespace,
  queueObject,
} from "../../runtimes/workers/mod.ts";
import { defineWorker, type EddyEvent } from "../../src/mod.ts";
import { LEASE_MS, POISON_ATTEMPTS, poison, work } from "./settings.ts";

interface Env {
  readonly EDDY_QUEUE: ObjectNamespace;
  readonly EDDY_TOKEN: string;
  /** Where the account is kept. */
  readonly EDDY_ACCOUNT: string;
}

let account = "";

interface Noted {
  readonly queue: string;
  readonly id: string;
  readonly attempt?: number;
}

async function note(word: string, { queue, id, attempt = 0 }: Noted): Promise<void> {
  const answer = await fetch(`${account}/${word}/${queue}/${id}/${attempt}`, { method: "POST" });
  await answer.body?.cancel();
}

/** The longest that a job takes, in milliseconds. */
const MOST_MS = 8;

function definition(env: Env) {
  account = env.EDDY_ACCOUNT;
  return defineWorker({
    queues: [
      work.handle(
        async (job) => {
          await note("start", job);
          await new Promise((resolve) => setTimeout(resolve, Math.random() * MOST_MS));
          await note("end", job);
        },
        // Kills alone must not make a dead letter of an honest job.
        { leaseMs: LEASE_MS, concurrency: 4, maxAttempts: 1_000, backoff: () => 0 },
      ),
      poison.handle(
        async (job) => {
          // Whoever keeps the account kills workerd now.
          await note("start", job);
          await new Promise(() => {});
        },
        { leaseMs: LEASE_MS, prefetch: 1, maxAttempts: POISON_ATTEMPTS },
      ),
    ],
  });
}

function heard(event: EddyEvent): void {
  if (event.type !== "lost" && (event.type !== "settled" || event.verdict !== "ack")) return;
  const { queue, jobId: id } = event;
  // Nobody waits for it: what is cut off says nothing.
  note(event.type === "lost" ? "lost" : "ack", { queue, id }).catch(() => {});
}

export class EddyQueue extends queueObject<Env>({ definition, plan: "paid", on: heard }) {}

export default createWorkersHandler<Env>({
  definition,
  broker: (env) => new DurableObjectBroker({ namespace: env.EDDY_QUEUE }),
  token: (env) => env.EDDY_TOKEN,
  drain: false,
  plan: "paid",
});
