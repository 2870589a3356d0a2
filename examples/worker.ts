/**
 * A small worker: one queue of e-mails. The commands run it where a folder has no `worker.ts` of its own.
 *
 * ```sh
 * npm run enqueue -- emails '{"to":"ada@example.com","subject":"Hello"}'
 * npm run worker
 * ```
 *
 * @module
 */
import * as v from "valibot";
import { defineWorker, queue } from "../src/mod.ts";

/** The queue: its name, and what a body must look like. Other bodies are never handed out. */
export const emails = queue("emails", {
  body: v.object({ to: v.pipe(v.string(), v.email()), subject: v.string() }),
});

/** Stands for the call to a mail service. */
async function send(_to: string, _subject: string, signal: AbortSignal): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 20));
  signal.throwIfAborted();
}

export default defineWorker({
  queues: [
    emails.handle(
      async (job) => {
        await send(job.body.to, job.body.subject, job.signal);
        job.log.info("E-mail sent");
      },
      { concurrency: 4, maxAttempts: 5 },
    ),
  ],
});
