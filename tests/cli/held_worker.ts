/**
 * A worker for tests: each job asks `EDDY_TEST_URL` and takes as long as the answer does, so the test decides when a job ends.
 *
 * @module
 */
import { defineWorker, queue } from "../../src/mod.ts";

export default (env: Readonly<Record<string, string | undefined>>) =>
  defineWorker({
    graceMs: Number(env.EDDY_TEST_GRACE_MS ?? 10_000),
    abortWaitMs: 100,
    queues: [
      queue<{ n: number }>("tasks").handle(
        async (job) => {
          // The job's signal is ignored on purpose.
          const response = await fetch(`${env.EDDY_TEST_URL}/${job.body.n}`);
          if (!response.ok) throw new Error(`answered ${response.status}`);
        },
        { concurrency: 2, prefetch: 8, maxAttempts: 2, backoff: () => 0 },
      ),
    ],
  });
