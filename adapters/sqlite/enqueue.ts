import type { Enqueued, NewJob } from "../../src/broker.ts";
import { dueTime } from "./clock.ts";
import { levelOf, storedBody, storedHeaders } from "./rows.ts";
import type { Tables } from "./statements.ts";

/** An enqueue forgets up to so many ids and requests beyond those it adds, so they cannot pile up. */
const FORGET_PER_ENQUEUE = 8;

export interface EnqueueOutcome {
  readonly answers: readonly Enqueued[];
  /** Whether jobs were taken in, delayed ones too: whoever sleeps must learn the new due time. */
  readonly isNews: boolean;
}

/** Takes jobs in, or answers as it did when the request came first. Belongs inside a transaction. */
export function enqueueJobs(
  tables: Tables,
  requestId: string,
  jobs: readonly NewJob[],
  now: number,
  windowMs: number,
): EnqueueOutcome {
  const { sql, queue } = tables;
  const before = sql.seen.get(queue, "request", requestId);
  if (before !== undefined && Number(before.until) > now) {
    const duplicates = String(before.answer);
    const answers = jobs.map((job, i) => ({ id: job.id, duplicate: duplicates[i] === "d" }));
    return { answers, isNews: false };
  }
  let isNews = false;
  let added = 1;
  const answers = jobs.map((job): Enqueued => {
    if (job.dedupe) {
      if (isSeen(tables, job.id, now)) return { id: job.id, duplicate: true };
      sql.see.run(queue, "job", job.id, now + windowMs, null);
      added += 1;
    }
    const isDelayed = job.delayMs > 0;
    sql.addJob.run(
      queue,
      isDelayed ? "delayed" : "ready",
      levelOf(job.priority),
      now,
      isDelayed ? dueTime(now, job.delayMs) : null,
      job.id,
      storedHeaders(job.headers),
      storedBody(job.body),
    );
    isNews = true;
    return { id: job.id, duplicate: false };
  });
  // One letter a job: `d` where it was kept out.
  const answer = answers.map((one) => (one.duplicate ? "d" : "a")).join("");
  sql.see.run(queue, "request", requestId, now + windowMs, answer);
  for (const row of sql.oldSeen.all(now, added + FORGET_PER_ENQUEUE)) {
    sql.forgetSeen.run(Number(row.queue), String(row.kind), String(row.key));
  }
  return { answers, isNews };
}

function isSeen({ sql, queue }: Tables, id: string, now: number): boolean {
  const seen = sql.seen.get(queue, "job", id);
  return seen !== undefined && Number(seen.until) > now;
}
