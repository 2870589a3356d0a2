/**
 * A Worker for the tests of an object that only keeps jobs: its crons drain it from outside.
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
import { type DrainReport, defineWorker, type EddyEvent, queue } from "../../../src/mod.ts";

interface Env {
  readonly EDDY_QUEUE: ObjectNamespace;
}

const ran: string[] = [];
const reports: DrainReport[] = [];
const events: EddyEvent[] = [];

const bytes = queue("bytes", { codec: "bytes" });
const worker = defineWorker({
  queues: [
    bytes.handle(
      (job) => {
        ran.push(`${job.id}:${(job.body as Uint8Array).byteLength}:${job.attempt}`);
      },
      { prefetch: 32 },
    ),
  ],
});

export class EddyQueue extends queueObject<Env>() {}

const handler = createWorkersHandler<Env>({
  definition: worker,
  broker: (env) => new DurableObjectBroker({ namespace: env.EDDY_QUEUE }),
  plan: "free",
  log: () => {},
  on: (event) => events.push(event),
  onReport: (report) => reports.push(report),
});

export default {
  ...handler,
  async fetch(request: Request, env: Env, ctx: InvocationContext): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    switch (pathname) {
      case "/test/enqueue": {
        const body = new Uint8Array(Number(searchParams.get("size"))).fill(7);
        const count = Number(searchParams.get("count"));
        const ids = await handler.produce(env, ctx, async (producer) => {
          const jobs = Array.from({ length: count }, () => ({ body }));
          return (await producer.enqueueMany(bytes as never, jobs as never)).map(({ id }) => id);
        });
        return Response.json(ids);
      }
      case "/test/look":
        return Response.json({
          ran: ran.splice(0),
          reports: reports.splice(0),
          events: events.splice(0),
        });
      default:
        return await handler.fetch(request, env, ctx);
    }
  },
};
