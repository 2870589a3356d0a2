/**
 * What the benches of the other queues for Bun share: their jobs, and the time from the first processor's call until the last job was
 * confirmed.
 *
 * @module
 */

interface BulkQueue {
  addBulk(
    jobs: { name: string; data: { n: number }; opts: { removeOnComplete: boolean } }[],
  ): Promise<unknown>;
}

/** Enqueues so many jobs, a thousand at a time. */
export async function addJobs(queue: BulkQueue, count: number): Promise<void> {
  for (let at = 0; at < count; at += 1000) {
    await queue.addBulk(
      Array.from({ length: Math.min(1000, count - at) }, (_, n) => ({
        name: "job",
        data: { n: at + n },
        // An acked job is gone, as with the others.
        opts: { removeOnComplete: true },
      })),
    );
  }
}

/** Times a worker on so many jobs. Its members stand by themselves, as a worker's processor and listeners. */
export function stopwatch(count: number) {
  let firstAt = 0;
  let left = count;
  const done = Promise.withResolvers<number>();
  return {
    process: async (): Promise<void> => {
      if (firstAt === 0) firstAt = performance.now();
    },
    completed: (): void => {
      left -= 1;
      if (left === 0) done.resolve(performance.now() - firstAt);
    },
    failed: (error: Error): void => done.reject(error),
    /** Resolves with the time in milliseconds, when the last job is confirmed. */
    ms: done.promise,
  };
}
