/**
 * A Worker for the tests of crons and consumers over a remote broker, Redis or, where `NATS_URL` is set, NATS: its handlers call a sink, wait, or compute.
 *
 * @module
 */
import { NatsBroker } from "../../../adapters/nats/mod.ts";
import { RedisBroker } from "../../../adapters/redis/mod.ts";
import {
  type ConsumerObjectStub,
  consumerObject,
  createWorkersHandler,
  type InvocationContext,
  type ObjectNamespace,
} from "../../../runtimes/workers/mod.ts";
import { type DrainReport, defineWorker, type EddyEvent, type Job, queue } from "../../../src/mod.ts";
import { consumerRoute } from "./consumer_routes.ts";

interface Env {
  readonly REDIS_URL: string;
  readonly REDIS_TOKEN: string;
  readonly NATS_URL?: string;
  readonly SINK_URL: string;
  readonly EDDY_TOKEN: string;
  readonly CONSUMER: ObjectNamespace;
}

const reports: DrainReport[] = [];
const events: EddyEvent[] = [];
/** The clock that does not stand still while code computes; the rules leave it there. */
const realNow = (globalThis as unknown as { eddyRealNow: () => number }).eddyRealNow;

/** Calls the sink, past what a drain counts where it must not matter. */
async function call(env: Env, job: Job, fetched: (url: string) => Promise<Response>): Promise<void> {
  const response = await fetched(`${env.SINK_URL}/${job.queue}/${job.id}?attempt=${job.attempt}`);
  await response.text();
  if (!response.ok) throw new Error("the sink refused");
}

const worker = (env: Env) =>
  defineWorker({
    queues: [
      queue("calls").handle((job) => call(env, job, (url) => job.fetch(url))),
      queue("wide").handle((job) => call(env, job, (url) => job.fetch(url)), {
        concurrency: 20,
      }),
      queue("naps").handle(
        async (job) => {
          await new Promise((resolve) => setTimeout(resolve, 150));
          await call(env, job, fetch);
        },
        { leaseMs: 1_000 },
      ),
      queue("sums").handle((_job) => {
        const until = realNow() + 40;
        while (realNow() < until);
      }),
    ],
  });

const broker = (env: Env) =>
  env.NATS_URL === undefined
    ? new RedisBroker({ url: env.REDIS_URL, token: env.REDIS_TOKEN })
    : new NatsBroker({ url: env.NATS_URL });

export class Consumer extends consumerObject<Env>({
  definition: worker,
  broker,
  queues: ["calls"],
  plan: "free",
  idleMs: { min: 20, max: 200 },
  log: () => {},
}) {}

const consumer = (env: Env) => env.CONSUMER.get(env.CONSUMER.idFromName("one")) as ConsumerObjectStub;

const handlers = new Map<string, ReturnType<typeof createWorkersHandler<Env>>>();

/** The handler for a cron, whose text stands for the queue and the wall limit in milliseconds: `naps 2000`. */
function handlerFor(cron: string) {
  const known = handlers.get(cron);
  if (known !== undefined) return known;
  const [name = "", wallMs] = cron.split(" ");
  const made = createWorkersHandler<Env>({
    definition: worker,
    broker,
    token: (env) => env.EDDY_TOKEN,
    plan: "free",
    ...(wallMs === undefined ? {} : { limits: { wallMs: Number(wallMs) } }),
    drain: { queues: [name] },
    log: () => {},
    on: (event) => events.push(event),
    onReport: (report) => reports.push(report),
  });
  handlers.set(cron, made);
  return made;
}

export default {
  async fetch(request: Request, env: Env, ctx: InvocationContext): Promise<Response> {
    const { pathname } = new URL(request.url);
    switch (pathname) {
      case "/test/reports":
        return Response.json(reports.splice(0));
      case "/test/events":
        return Response.json(events.splice(0));
      default:
        return (
          (await consumerRoute(pathname, () => consumer(env))) ??
          (await handlerFor("calls").fetch(request, env, ctx))
        );
    }
  },
  async scheduled(event: { cron: string; scheduledTime: number }, env: Env, ctx: InvocationContext) {
    await handlerFor(event.cron).scheduled(event, env, ctx);
  },
};
