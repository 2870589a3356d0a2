/**
 * A Worker for the tests of queues in objects: the handlers note when they ran, and the object can be ended.
 *
 * @module
 */
import {
  createWorkersHandler,
  DurableObjectBroker,
  type InvocationContext,
  type ObjectNamespace,
  queueObject,
} from "../../../runtimes/workers/mod.ts";
import { defineWorker, type EddyEvent, type Job, queue } from "../../../src/mod.ts";

interface Env {
  readonly EDDY_QUEUE: ObjectNamespace;
  readonly EDDY_TOKEN: string;
}

/** What a handler noted. */
export interface Noted {
  readonly queue: string;
  readonly id: string;
  readonly at: number;
  readonly enqueuedAt: number;
  readonly attempt: number;
  readonly suspect: boolean;
}

interface Body {
  /** How long it takes, in milliseconds. */
  readonly waitMs?: number;
  /** How many attempts fail. */
  readonly fails?: number;
  /** Ends its object in the middle. */
  readonly kills?: boolean;
}

const noted: Noted[] = [];
const events: EddyEvent[] = [];
let enders: (() => void)[] = [];

async function handle(job: Job<Body>): Promise<void> {
  const { waitMs, fails = 0, kills = false } = job.body ?? {};
  const { id, enqueuedAt, attempt, suspect } = job;
  noted.push({ queue: job.queue, id, at: Date.now(), enqueuedAt, attempt, suspect });
  if (kills) for (const end of enders.splice(0)) end();
  if (waitMs !== undefined || kills) await new Promise((resolve) => setTimeout(resolve, waitMs ?? 60_000));
  if (attempt <= fails) throw new Error("not yet");
}

const options = { leaseMs: 1_000, maxAttempts: 3, backoff: { baseMs: 50, maxMs: 50 } };
const worker = defineWorker({
  queues: [
    queue<Body>("one").handle(handle, options),
    queue<Body>("many").handle(handle, { ...options, leaseMs: 30_000, concurrency: 4 }),
    queue<Body>("later").handle(handle, { ...options, concurrency: 8 }),
  ],
});

export class EddyQueue extends queueObject<Env>({
  definition: worker,
  plan: "paid",
  on: (event) => events.push(event),
}) {
  /** Ends the object at once, as a crash does. */
  async end(): Promise<void> {
    this.#end();
  }
  constructor(...args: ConstructorParameters<ReturnType<typeof queueObject<Env>>>) {
    super(...args);
    enders.push(() => this.#end());
  }
  #end(): void {
    (this as unknown as { ctx: { abort(why: string): void } }).ctx.abort("ended by the test");
  }
}

const handler = createWorkersHandler<Env>({
  definition: worker,
  broker: (env) => new DurableObjectBroker({ namespace: env.EDDY_QUEUE }),
  token: (env) => env.EDDY_TOKEN,
  drain: false,
  plan: "paid",
});

export default {
  async fetch(request: Request, env: Env, ctx: InvocationContext): Promise<Response> {
    const url = new URL(request.url);
    const name = url.searchParams.get("queue") ?? "one";
    switch (url.pathname) {
      case "/test/noted":
        return Response.json(noted.splice(0));
      case "/test/events":
        return Response.json(events.splice(0));
      case "/test/end": {
        enders = [];
        const stub = env.EDDY_QUEUE.get(env.EDDY_QUEUE.idFromName(name)) as { end(): Promise<void> };
        await stub.end().catch(() => {});
        return Response.json(null);
      }
      case "/test/claim": {
        const broker = new DurableObjectBroker({ namespace: env.EDDY_QUEUE });
        const settings = { leaseMs: 400, requestTimeoutMs: 5_000, dedupeWindowMs: 1_000 };
        const claimed = broker.queue(name, settings);
        await claimed.open();
        const { deliveries } = await claimed.claim({ leaseId: crypto.randomUUID(), max: 10, waitMs: 0 });
        return Response.json(deliveries.map(({ id }) => id));
      }
      case "/test/latency": {
        // Enqueues one job after the other, each once the last has run, and answers how long each took to its handler's start.
        const count = Number(url.searchParams.get("count"));
        const took: number[] = [];
        await handler.produce(env, ctx, async (producer) => {
          const target = worker.queues[0]!.handler.queue;
          for (let n = 0; n < count; n += 1) {
            const from = Date.now();
            const { id } = await producer.enqueue(target, {});
            while (!noted.some((one) => one.id === id)) await new Promise((go) => setTimeout(go, 0));
            const { at } = noted.find((one) => one.id === id) as Noted;
            took.push(at - from);
          }
        });
        return Response.json(took);
      }
      default:
        return await handler.fetch(request, env, ctx);
    }
  },
};
