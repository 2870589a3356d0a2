import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { PermanentError } from "../../src/errors.ts";
import type { HandlerOptions } from "../../src/options.ts";
import { type BatchHandler, type QueueOptions, queue } from "../../src/queue.ts";
import { defineWorker } from "../../src/worker.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

describe("a batch handler", () => {
  async function batch(
    handler: BatchHandler<unknown>,
    count: number,
    options: HandlerOptions & { batchSize?: number } = {},
    bodies?: readonly string[],
    settings: QueueOptions<unknown> = {},
  ) {
    const world = new World();
    const ids: string[] = [];
    for (let i = 0; i < count; i += 1) ids.push(...(await world.add(1, { body: bodies?.[i] ?? String(i) })));
    const worker = await world.startDefinition(
      defineWorker({
        queues: [queue("work", settings).handleBatch(handler, { backoff: () => 10, ...options })],
      }),
    );
    await world.untilEmpty();
    await world.platform.run(worker.stop());
    const verdictOf = (index: number) =>
      world
        .told("settled")
        .filter((one) => one.jobId === ids[index])
        .map((one) => one.verdict);
    return { world, worker, ids, verdictOf };
  }

  test("gets up to batchSize jobs at a time, each acked when it returns", async () => {
    const sizes: number[] = [];
    const { worker } = await batch((jobs) => sizes.push(jobs.length), 20, { batchSize: 8 });
    expect(sizes).toEqual([8, 8, 4]);
    expect(worker.stats()[0]).toMatchObject({ acked: 20, started: 20 });
  });

  test("may give each job a verdict of its own; the rest go with the batch", async () => {
    const { verdictOf } = await batch(
      (jobs) => {
        for (const job of jobs) {
          if (job.body === 0) job.deadLetter("bad");
          if (job.body === 1 && job.attempt === 1) job.retry();
        }
      },
      4,
      { batchSize: 4 },
    );
    expect([0, 1, 2, 3].map(verdictOf)).toEqual([["dead"], ["retry", "ack"], ["ack"], ["ack"]]);
  });

  test("that throws a PermanentError leaves those their retry that asked for it", async () => {
    const { verdictOf } = await batch(
      (jobs) => {
        for (const job of jobs) if (job.body === 1 && job.attempt === 1) job.retry();
        if (jobs.length > 1) throw new PermanentError("never");
      },
      2,
      { batchSize: 2 },
    );
    expect([0, 1].map(verdictOf)).toEqual([["dead"], ["retry", "ack"]]);
  });

  test("that throws retries those without a verdict", async () => {
    let calls = 0;
    const { verdictOf } = await batch(
      (jobs) => {
        calls += 1;
        if (calls > 1) return;
        jobs[0]?.deadLetter("bad");
        throw new Error("the others");
      },
      3,
      { batchSize: 3 },
    );
    expect([0, 1, 2].map(verdictOf)).toEqual([["dead"], ["retry", "ack"], ["retry", "ack"]]);
  });

  test("never sees an invalid one, and the others run", async () => {
    const seen: unknown[] = [];
    const { verdictOf, world } = await batch(
      (jobs) => {
        for (const job of jobs) seen.push(job.body);
      },
      3,
      { batchSize: 3 },
      ["1", "{", '"x"'],
      { body: v.number() },
    );
    expect(seen).toEqual([1]);
    expect([0, 1, 2].map(verdictOf)).toEqual([["ack"], ["dead"], ["dead"]]);
    expect(world.told("started").length).toBe(1);
  });

  test("is not called when all are invalid", async () => {
    let calls = 0;
    await batch(
      () => {
        calls += 1;
      },
      2,
      { batchSize: 2 },
      ["{", "{"],
    );
    expect(calls).toBe(0);
  });

  test("whose timeout is ignored: an invalid one stays dead, the others are retried", async () => {
    let calls = 0;
    const { verdictOf } = await batch(
      () => {
        calls += 1;
        return calls === 1 ? new Promise(() => {}) : undefined;
      },
      2,
      { batchSize: 2, timeoutMs: 100 },
      ["1", "{"],
    );
    expect([0, 1].map(verdictOf)).toEqual([["retry", "ack"], ["dead"]]);
  });

  test("measures a job by its share of the batch's time", async () => {
    const world = new World();
    await world.add(8);
    const worker = await world.startDefinition(
      defineWorker({
        queues: [queue("work").handleBatch(() => world.platform.sleep(80), { batchSize: 8 })],
      }),
    );
    await world.untilEmpty();
    await world.platform.run(worker.stop());
    expect(worker.stats()[0]?.averageMs).toBe(10);
  });
});
