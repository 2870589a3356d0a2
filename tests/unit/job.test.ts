import { describe, expect, test } from "bun:test";
import { JobTimeoutError, WorkerStoppedError } from "../../src/errors.ts";
import type { Job, LogLevel } from "../../src/job.ts";
import { queue } from "../../src/queue.ts";
import type { StandardSchema } from "../../src/schemas.ts";
import { startWorker } from "../../src/start.ts";
import { defineWorker } from "../../src/worker.ts";
import { run } from "../support/handling.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

/** Takes any body, in so many milliseconds. */
function slowSchema(world: World, ms: number): StandardSchema<unknown, unknown> {
  const validate = async (value: unknown) => {
    await world.platform.sleep(ms);
    return { value };
  };
  return { "~standard": { version: 1, vendor: "test", validate } };
}

describe("what a job shows", () => {
  test("its fields", async () => {
    const world = new World({ simulated: { wallStart: 1_700_000_000_000 } });
    await world.platform.pass(500);
    const [id] = await world.add(1, {
      body: '{"a":1}',
      headers: { "x-trace": "t1" },
      priority: "high",
    });
    let seen: Job<unknown> | undefined;
    const worker = await world.start(
      (job) => {
        seen = job;
      },
      { maxAttempts: 7 },
    );
    await world.untilEmpty();
    expect(seen).toMatchObject({
      id,
      queue: "work",
      body: { a: 1 },
      text: '{"a":1}',
      attempt: 1,
      maxAttempts: 7,
      suspect: false,
      enqueuedAt: 1_700_000_000_500,
      headers: { "x-trace": "t1" },
      priority: "high",
      deadline: Number.POSITIVE_INFINITY,
    });
    expect(seen?.leaseId).toBe(world.told("claimed")[0]?.leaseId as string);
    expect(new TextDecoder().decode(seen?.bytes)).toBe('{"a":1}');
    await world.platform.run(worker.stop());
  });

  test("the deadline of its timeout, on the wall clock", async () => {
    const { world } = await run(
      (job) => {
        expect(job.deadline).toBe(1_800_000_000_000 + 5_000);
      },
      { timeoutMs: 5_000 },
    );
    expect(world.told("settled")[0]?.verdict).toBe("ack");
  });

  test("a log that carries its queue, id and attempt, and never costs it", async () => {
    const world = new World();
    const [id] = await world.add(1);
    const lines: [LogLevel, string, Record<string, unknown>][] = [];
    const worker = await world.platform.run(
      startWorker(
        defineWorker({
          queues: [
            queue("work").handle((job) => {
              job.log.info("hello", { n: 1 });
              job.log.warn("thrice");
              job.log.error("fails");
              job.log.debug("late");
            }),
          ],
          log: (level, message, fields) => {
            if (level === "error") throw new Error("the disk is full");
            lines.push([level, message, fields]);
          },
        }),
        { broker: world.broker, platform: world.platform, on: world.on },
      ),
    );
    await world.untilEmpty();
    await world.platform.run(worker.stop());
    expect(lines).toEqual([
      ["info", "hello", { queue: "work", job: id, attempt: 1, n: 1 }],
      ["warn", "thrice", { queue: "work", job: id, attempt: 1 }],
      ["debug", "late", { queue: "work", job: id, attempt: 1 }],
    ]);
    expect(worker.stats()[0]?.acked).toBe(1);
  });
});

describe("a timeout", () => {
  test("aborts the signal, and one that heeds it is retried", async () => {
    let reason: unknown;
    const { verdicts, world } = await run(
      (job) =>
        new Promise((_, reject) => {
          job.signal.addEventListener("abort", () => {
            reason = job.signal.reason;
            reject(job.signal.reason);
          });
        }),
      { timeoutMs: 500, maxAttempts: 2 },
    );
    expect(verdicts).toEqual(["retry", "dead"]);
    expect(reason).toBeInstanceOf(JobTimeoutError);
    expect(world.told("finished")[0]).toMatchObject({ ranMs: 500, error: expect.stringContaining("500") });
  });

  test("that is ignored takes the slot back, retries the job and names it", async () => {
    const { verdicts, dead, world } = await run(() => new Promise(() => {}), {
      timeoutMs: 500,
      maxAttempts: 2,
    });
    expect(verdicts).toEqual(["retry", "dead"]);
    expect(dead[0]).toContain("JobTimeoutError");
    expect(world.told("abandoned").length).toBe(2);
    expect(world.told("finished")[0]?.ranMs).toBe(2_500);
  });

  test("that is ignored: its slot takes the next job, and its own job no second call while its lease would have held", async () => {
    for (const leaseMs of [3_000, 30_000]) {
      const world = new World();
      const [slow] = await world.add(2);
      let running = 0;
      const starts: number[] = [];
      const worker = await world.start(
        async (job) => {
          if (job.id !== slow) return;
          starts.push(world.platform.now());
          running += 1;
          expect(running).toBe(1);
          // Longer than it is waited for, and than a retry would be put off, but no longer than the lease.
          await world.platform.sleep(job.attempt === 1 ? 2_500 + leaseMs * 0.6 : 1);
          running -= 1;
        },
        { timeoutMs: 500, leaseMs, prefetch: 1, backoff: () => 10 },
      );
      await world.until(() => worker.stats()[0]?.acked === 1);
      expect(world.platform.now()).toBeLessThan(2_600);
      await world.untilEmpty();
      expect(starts.length).toBe(2);
      expect(worker.stats()[0]).toMatchObject({ acked: 2, retried: 1, abandoned: 1, lost: 0 });
      await world.platform.run(worker.stop());
    }
  });

  test("that is ignored for ever costs an attempt each time, until the job is a dead letter; no slot is lost for it", async () => {
    const world = new World();
    const [bad] = await world.add(20);
    const worker = await world.start((job) => (job.id === bad ? new Promise(() => {}) : undefined), {
      timeoutMs: 500,
      maxAttempts: 3,
      leaseMs: 10_000,
    });
    await world.untilEmpty();
    expect(worker.stats()[0]).toMatchObject({ acked: 19, retried: 2, dead: 1, abandoned: 3, running: 0 });
    expect((await world.peek("dead"))[0]).toMatchObject({
      id: bad,
      attempts: 3,
      error: expect.stringMatching(
        /^JobTimeoutError: .*500, and ignored its signal; make it heed job.signal$/,
      ),
    });
    await world.platform.run(worker.stop());
  });

  test("does not touch a job that is done in time", async () => {
    const world = new World();
    await world.add(20);
    const worker = await world.start(world.takes(400), { timeoutMs: 500, prefetch: 4 });
    await world.untilEmpty();
    await world.platform.run(worker.stop());
    expect(worker.stats()[0]).toMatchObject({ acked: 20, retried: 0 });
    expect(world.platform.timers).toBe(0);
  });

  test("while the body is still being checked: retried, and the handler is never called", async () => {
    const world = new World();
    await world.add(1);
    let called = 0;
    const slow = slowSchema(world, 10_000);
    const worker = await world.startDefinition(
      defineWorker({
        queues: [
          queue("work", { body: slow }).handle(
            () => {
              called += 1;
            },
            { timeoutMs: 500, maxAttempts: 1 },
          ),
        ],
      }),
    );
    await world.untilEmpty();
    await world.platform.pass(20_000);
    expect(called).toBe(0);
    expect((await world.peek("dead"))[0]?.error).toContain("JobTimeoutError");
    await world.platform.run(worker.stop());
  });
});

describe("a lease lost while a body is still being checked", () => {
  test("keeps the handler from being called", async () => {
    const world = new World();
    await world.add(1);
    world.broker.fault = (asked) => (asked.verb === "renew" ? "lost" : undefined);
    let called = 0;
    const slow = slowSchema(world, 2_000);
    const worker = await world.startDefinition(
      defineWorker({
        queues: [
          queue("work", { body: slow }).handle(
            () => {
              called += 1;
            },
            { leaseMs: 1_000, safetyPollMs: 1_000_000 },
          ),
        ],
      }),
    );
    await world.platform.pass(2_500);
    expect(world.told("lost").length).toBeGreaterThan(0);
    expect(called).toBe(0);
    await world.platform.run(worker.stop());
  });
});

describe("job.signal", () => {
  test("asked for only after the abort is aborted already, with the first reason", async () => {
    const world = new World();
    await world.add(1);
    let late: AbortSignal | undefined;
    const worker = await world.start(
      async (job) => {
        await world.platform.sleep(5_000);
        late = job.signal;
      },
      { timeoutMs: 1_000 },
      { graceMs: 0 },
    );
    await world.platform.pass(1_100);
    const stopping = worker.stop();
    await world.platform.run(stopping);
    await world.platform.pass(10_000);
    expect(late?.aborted).toBe(true);
    expect(late?.reason).toBeInstanceOf(JobTimeoutError);
  });

  test("is the same each time", async () => {
    const { verdicts } = await run((job) => {
      const { signal } = job;
      if (signal !== job.signal || signal.aborted) job.deadLetter("another signal");
    });
    expect(verdicts).toEqual(["ack"]);
  });
});

describe("job.fetch", () => {
  test("is the platform's, aborted by the job's signal and by the caller's own", async () => {
    const seen: RequestInit[] = [];
    const world = new World({
      simulated: {
        fetch: async (_, init) => {
          seen.push(init ?? {});
          return new Response("fine");
        },
      },
    });
    await world.add(1);
    const own = new AbortController();
    const worker = await world.start(
      async (job) => {
        const answer = await job.fetch("https://receiver.example/", { method: "POST", signal: own.signal });
        expect(await answer.text()).toBe("fine");
        await job.fetch(new Request("https://receiver.example/"));
        await new Promise((_, reject) =>
          job.signal.addEventListener("abort", () => reject(job.signal.reason)),
        );
      },
      {},
      { graceMs: 0 },
    );
    await world.platform.pass(10);
    expect(seen[0]?.method).toBe("POST");
    expect(seen.map((init) => init.signal?.aborted)).toEqual([false, false]);
    own.abort(new Error("the caller's"));
    expect(seen.map((init) => init.signal?.aborted)).toEqual([true, false]);
    await world.platform.run(worker.stop());
    expect(seen[1]?.signal?.reason).toBeInstanceOf(WorkerStoppedError);
  });
});
