/**
 * What `peek` and `dead` share: looking at the jobs of one state.
 *
 * @module
 */
import type { JobState } from "../../src/broker.ts";
import { shown } from "../../src/http/queue_routes.ts";
import { ANY_QUEUE_FLAG, BROKER_FLAG, type Context, JSON_FLAG, WORKER_FLAG } from "./command.ts";
import { printable, shownMoment } from "./printable.ts";
import { offered, type QueueFlags, withQueue } from "./queues.ts";

/** The flags of both. */
export const PEEK_FLAGS = {
  broker: BROKER_FLAG,
  worker: WORKER_FLAG,
  "any-queue": ANY_QUEUE_FLAG,
  limit: { kind: "count", unit: "jobs", least: 1, default: 20, help: "how many to show" },
  bodies: { kind: "switch", help: "show the bodies too; without it they are left out" },
  json: JSON_FLAG,
} as const;

export interface PeekArgs {
  readonly flags: QueueFlags & {
    readonly limit: number;
    readonly bodies: boolean;
    readonly json: boolean;
  };
  readonly positionals: readonly string[];
}

/** Prints up to `limit` jobs of a state. */
export async function peekAt(state: JobState, context: Context, args: PeekArgs): Promise<number> {
  const { limit, bodies, json } = args.flags;
  return await withQueue(context, args, {}, async (opened, broker) => {
    const jobs = await offered(broker, opened, "peek", opened.peek)(state, limit, bodies);
    for (const job of jobs) {
      const fields = shown(job, bodies);
      if (json) {
        context.io.out(JSON.stringify(fields));
        continue;
      }
      const when = job.diedAt ?? job.dueAt ?? job.enqueuedAt;
      const what = job.diedAt !== undefined ? "died" : job.dueAt !== undefined ? "due" : "enqueued";
      const error = job.error === undefined ? "" : `: ${printable(job.error)}`;
      const line = `attempts ${job.attempts}, ${what} ${shownMoment(when)}${error}`;
      context.io.out(`${printable(job.id)}  ${line}`);
      const body = fields.body ?? fields.bodyBase64;
      if (body !== undefined) context.io.out(`  ${printable(String(body))}`);
    }
    if (jobs.length === 0 && !json) context.io.out(`No job is ${state}.`);
    return 0;
  });
}
