/**
 * What `peek` and `dead` share: looking at the jobs of one state.
 *
 * @module
 */
import type { JobState, PeekedJob } from "../../src/broker.ts";
import { shown } from "../../src/http/queue_routes.ts";
import { printable, shownMoment } from "./printable.ts";
import type { AtQueue } from "./queue_command.ts";

/** The flags of both. */
export const PEEK_FLAGS = {
  limit: { kind: "count", unit: "jobs", least: 1, default: 20, help: "how many to show" },
  bodies: { kind: "switch", help: "show the bodies too; without it they are left out" },
} as const;

/** How to look. */
export interface PeekFlags {
  readonly limit: number;
  readonly bodies: boolean;
  readonly json: boolean;
}

/** Prints up to `limit` jobs of a state, with `json` one a line. */
export async function peekAt(
  state: JobState,
  { queue, io, able, maxAttempts }: AtQueue,
  { limit, bodies, json }: PeekFlags,
): Promise<number> {
  const jobs = await able("peek", queue.peek)(state, limit, bodies);
  for (const job of jobs) {
    const fields = shown(job, bodies);
    if (json) {
      io.out(JSON.stringify(fields));
      continue;
    }
    io.out(printable(`${job.id}  ${detailsOf(job, maxAttempts)}`));
    const body = fields.body ?? fields.bodyBase64;
    if (body !== undefined) io.out(`  ${printable(String(body))}`);
  }
  if (jobs.length === 0 && !json) io.out(`No job is ${state}.`);
  return 0;
}

/** What is told of a job beside its id; of its headers the names, for a value may be a secret. */
function detailsOf(job: PeekedJob, maxAttempts: number | undefined): string {
  const when = job.diedAt ?? job.dueAt ?? job.enqueuedAt;
  const what = job.diedAt !== undefined ? "died" : job.dueAt !== undefined ? "due" : "enqueued";
  const headers = Object.keys(job.headers);
  const parts = [
    `attempts ${job.attempts}${maxAttempts === undefined ? "" : ` of ${maxAttempts}`}`,
    ...(job.priority === "normal" ? [] : [`priority ${job.priority}`]),
    ...(headers.length === 0 ? [] : [`headers ${headers.join(" ")}`]),
    `${what} ${shownMoment(when)}`,
  ];
  return `${parts.join(", ")}${job.error === undefined ? "" : `: ${job.error}`}`;
}
