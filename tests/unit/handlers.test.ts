import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { JobTimeoutError, PermanentError, WorkerStoppedError } from "../../src/errors.ts";
import type { Job, LogLevel } from "../../src/job.ts";
import type { HandlerOptions } from "../../src/options.ts";
import { type BatchHandler, type Handler, type QueueOptions, queue } from "../../src/queue.ts";
import type { StandardSchema } from "../../src/schemas.ts";
import { startWorker } from "../../src/start.ts";
import { defineWorker } from "../../src/worker.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

interface Outcome {
  readonly world: World;
  readonly verdicts: readonly string[];
  readonly dead: readonly (string | undefined)[];
  readonly started: number;
}

/** Runs handlers over jobs with these bodies until the queue is empty, and tells what became of them. */
async function run(
  handler: Handler<unknown>,
  options: HandlerOptions = {},
  settings: { bodies?: readonly (string | Uint8Array)[]; queue?: QueueOptions<unknown> } = {},
): Promise<Outcome> {
  const world = new World();
  for (const body of settings.bodies ?? ["null"]) await world.add(1, { body });
  const worker = await world.startDefinition(
    defineWorker({
      queues: [queue("work", settings.queue ?? {}).handle(handler, { backoff: () => 10, ...options })],
    }),
  );
  await world.untilEmpty();
  await world.platform.run(worker.stop());
  return {
    world,
    verdicts: world.told("settled").map((one) => one.verdict),
    dead: (await world.peek("dead")).map((one) => one.error),
    started: world.told("started").length,
  };
}

describe("a handler that fails", () => {
  const failures: [string, Handler<unknown>, string][] = [
    [
      "throws",
      () => {
        throw new Error("no luck");
      },
      "Error: no luck",
    ],
    ["rejects", () => Promise.reject(new TypeError("no luck")), "TypeError: no luck"],
    [
      "throws text",
      () => {
        throw "no luck";
      },
      "no luck",
    ],
    ["rejects with nothing", () => Promise.reject(undefined), "A undefined was thrown instead of an Error"],
    [
      "throws an object",
      () => {
        throw { code: 7 };
      },
      "A object was thrown instead of an Error",
    ],
    [
      "throws an error that cannot be read",
      () => {
        throw Object.defineProperty(new Error(), "message", {
          get() {
            throw new Error("unreadable");
          },
        });
      },
      "A object was thrown instead of an Error",
    ],
    [
      "throws an error named by a symbol",
      () => {
        throw Object.assign(new Error("x"), { name: Symbol("odd") });
      },
      "A object was thrown instead of an Error",
    ],
    [
      "answers a thenable that rejects",
      // biome-ignore lint/suspicious/noThenProperty: a thenable is what is tested
      () => ({ then: (_: unknown, no: (error: Error) => void) => no(new Error("no luck")) }),
      "Error: no luck",
    ],
    [
      "answers a thenable that throws",
      () => ({
        // biome-ignore lint/suspicious/noThenProperty: a thenable is what is tested
        then() {
          throw new Error("no luck");
        },
      }),
      "Error: no luck",
    ],
    [
      "answers something whose then cannot be read",
      () => ({
        // biome-ignore lint/suspicious/noThenProperty: a thenable is what is tested
        get then() {
          throw new Error("no luck");
        },
      }),
      "Error: no luck",
    ],
  ];
  for (const [what, handler, error] of failures) {
    test(`${what}: retried up to maxAttempts, then dead with the error`, async () => {
      const { verdicts, dead, started, world } = await run(handler, { maxAttempts: 3 });
      expect(verdicts).toEqual(["retry", "retry", "dead"]);
      expect(dead).toEqual([error]);
      expect(started).toBe(3);
      expect(world.told("started").map((one) => one.attempt)).toEqual([1, 2, 3]);
      expect(world.told("finished").map((one) => one.error)).toEqual([error, error, error]);
    });
  }

  test("permanently: dead at once", async () => {
    const { verdicts, dead } = await run(() => {
      throw new PermanentError("the receiver refuses it");
    });
    expect(verdicts).toEqual(["dead"]);
    expect(dead).toEqual(["PermanentError: the receiver refuses it"]);
  });

  test("with a long text: it is cut to 1,000 characters, and no half of a pair is left", async () => {
    const { dead } = await run(
      () => {
        throw "😀".repeat(800);
      },
      { maxAttempts: 1 },
    );
    expect(dead[0]?.length).toBeLessThanOrEqual(1_000);
    expect(dead[0]?.isWellFormed()).toBe(true);
    expect(dead[0]?.endsWith("…")).toBe(true);
  });

  test("with backoff: the delay is the option's, or exponential with full jitter", async () => {
    const world = new World();
    await world.add(1);
    const worker = await world.start(
      () => {
        throw new Error("no");
      },
      { maxAttempts: 8, backoff: { baseMs: 1_000, maxMs: 5_000 } },
    );
    await world.untilEmpty();
    await world.platform.run(worker.stop());
    const delays = world.broker.log.flatMap((asked) =>
      asked.settle.flatMap(({ verdict }) => (verdict.kind === "retry" ? [verdict.delayMs] : [])),
    );
    expect(delays.length).toBe(7);
    for (const [index, ms] of delays.entries()) {
      expect(ms).toBeGreaterThanOrEqual(0);
      expect(ms).toBeLessThan(Math.min(5_000, 1_000 * 2 ** index));
    }
    expect(new Set(delays).size).toBe(7);
  });

  test("with a backoff function that is faulty: the job is retried all the same", async () => {
    for (const backoff of [
      () => Number.NaN,
      () => -1,
      () => Number.POSITIVE_INFINITY,
      () => "soon" as unknown as number,
      () => {
        throw new Error("faulty");
      },
    ]) {
      const { verdicts } = await run(
        () => {
          throw new Error("no");
        },
        { maxAttempts: 2, backoff },
      );
      expect(verdicts).toEqual(["retry", "dead"]);
    }
  });
});

describe("a handler that succeeds", () => {
  const successes: [string, Handler<unknown>][] = [
    ["returns nothing", () => {}],
    ["returns a value", () => 7],
    ["resolves", async () => "done"],
    [
      "answers a thenable that calls back at once, twice",
      () => ({
        // biome-ignore lint/suspicious/noThenProperty: a thenable is what is tested
        then(yes: () => void) {
          yes();
          yes();
        },
      }),
    ],
    ["returns null", () => null],
  ];
  for (const [what, handler] of successes) {
    test(`${what}: acked`, async () => {
      const { verdicts, started } = await run(handler);
      expect([verdicts, started]).toEqual([["ack"], 1]);
    });
  }
});

describe("job.retry and job.deadLetter", () => {
  test("retry: charged, with the delay asked for, and dead on the last attempt with the reason", async () => {
    const { verdicts, dead, world } = await run((job) => job.retry({ delayMs: 5_000, reason: "not yet" }), {
      maxAttempts: 2,
    });
    expect(verdicts).toEqual(["retry", "dead"]);
    expect(dead).toEqual(["not yet"]);
    const at = world.events.flatMap((one, index) =>
      one.type === "started" ? [world.eventTimes[index] ?? 0] : [],
    );
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThanOrEqual(5_000);
  });

  test("retry: without a delay the backoff decides, without a reason there is one", async () => {
    const { dead } = await run((job) => job.retry(), { maxAttempts: 2 });
    expect(dead).toEqual(["the handler asked for a retry"]);
  });

  test("retry: a reason that is no text is made one", async () => {
    const { dead } = await run(
      (job) => job.retry({ reason: new Error("as an error") as unknown as string }),
      {
        maxAttempts: 1,
      },
    );
    expect(dead).toEqual(["Error: as an error"]);
  });

  test("retry: a faulty delay is refused, which fails the handler", async () => {
    for (const delayMs of [-1, 1.5, Number.NaN, "5" as unknown as number]) {
      const { dead } = await run((job) => job.retry({ delayMs }), { maxAttempts: 1 });
      expect(dead[0]).toContain("RangeError: Cannot retry job");
      expect(dead[0]).toContain("give whole milliseconds from 0 on");
    }
  });

  test("deadLetter: dead at once with the reason", async () => {
    const { verdicts, dead } = await run((job) => job.deadLetter("of no use"));
    expect([verdicts, dead]).toEqual([["dead"], ["of no use"]]);
  });

  test("the last call counts, and counts more than a throw", async () => {
    expect(
      (
        await run((job) => {
          job.retry();
          job.deadLetter("after all");
        })
      ).dead,
    ).toEqual(["after all"]);
    expect(
      (
        await run((job) => {
          job.deadLetter("decided");
          throw new Error("afterwards");
        })
      ).dead,
    ).toEqual(["decided"]);
  });
});

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

describe("bodies", () => {
  test('text stays text: "123" is no number, "null" is not nothing', async () => {
    const bodies = ["123", "null", "", "true", '{"a":1}', "ünïcödé 😀"];
    const seen: unknown[] = [];
    await run((job) => seen.push(job.body), {}, { bodies, queue: { codec: "text" } });
    expect(seen).toEqual(bodies);
  });

  test("bytes stay bytes, whatever they are", async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
    const seen: unknown[] = [];
    const { verdicts } = await run(
      (job) => seen.push(job.body),
      {},
      { bodies: [bytes], queue: { codec: "bytes" } },
    );
    expect(seen).toEqual([bytes]);
    expect(verdicts).toEqual(["ack"]);
  });

  test("JSON is parsed, and large whole numbers keep their digits in job.text", async () => {
    const body = '{"id":9007199254740993123,"list":[1,"2",null]}';
    let text = "";
    await run(
      (job) => {
        text = job.text;
        expect((job.body as { list: unknown[] }).list).toEqual([1, "2", null]);
      },
      {},
      { bodies: [body] },
    );
    expect(text).toBe(body);
  });

  test("that cannot be read are dead letters at once, unrun and unquoted, and the rest runs", async () => {
    const bodies = ['{"secret":', new Uint8Array([0xff, 0xfe]), "5"];
    const seen: unknown[] = [];
    const { dead, verdicts } = await run((job) => seen.push(job.body), { prefetch: 4 }, { bodies });
    expect(seen).toEqual([5]);
    expect(verdicts.toSorted()).toEqual(["ack", "dead", "dead"]);
    expect(dead[0]).toContain("malformed");
    expect(dead[1]).toContain("UTF-8");
    expect(dead.join()).not.toContain("secret");
  });

  test("that do not fit the schema are dead letters with the place, not the value", async () => {
    const schema = v.object({
      to: v.pipe(v.string(), v.email()),
      lines: v.array(v.object({ n: v.number() })),
    });
    const bodies = [
      '{"to":"my secret","lines":[{"n":1},{"n":"another secret"}]}',
      '"the third secret"',
      '{"to":"a@b.example","lines":[]}',
    ];
    const seen: unknown[] = [];
    const { dead } = await run((job) => seen.push(job.body), {}, { bodies, queue: { body: schema } });
    expect(seen).toEqual([{ to: "a@b.example", lines: [] }]);
    expect(dead).toEqual([
      "The body does not fit the queue's schema at: to, lines.1.n",
      "The body does not fit the queue's schema at: the whole body",
    ]);
  });

  test("are what the schema makes of them", async () => {
    const seen: unknown[] = [];
    const schema = v.pipe(
      v.string(),
      v.transform((text) => text.length),
    ) as unknown as StandardSchema<unknown, unknown>;
    await run((job) => seen.push(job.body), {}, { bodies: ['"four"'], queue: { body: schema } });
    expect(seen).toEqual([4]);
  });

  const schemas: [string, (value: unknown) => unknown, readonly string[]][] = [
    ["answers later", async (value) => ({ value }), ["ack"]],
    ["answers no later", async () => ({ issues: [{ message: "no" }] }), ["dead"]],
    [
      "throws",
      () => {
        throw new Error("a secret");
      },
      ["dead"],
    ],
    ["rejects", () => Promise.reject(new Error("a secret")), ["dead"]],
    ["answers nothing", () => undefined, ["dead"]],
    ["answers nothing later", async () => undefined, ["dead"]],
  ];
  for (const [what, validate, verdicts] of schemas) {
    test(`whose schema ${what}: ${verdicts}`, async () => {
      const body = { "~standard": { version: 1, vendor: "test", validate } } as StandardSchema<
        unknown,
        unknown
      >;
      const outcome = await run(() => {}, {}, { queue: { body } });
      expect(outcome.verdicts).toEqual([...verdicts]);
      expect(outcome.dead.join()).not.toContain("secret");
    });
  }

  test("whose schema needs its own this", async () => {
    class Own {
      readonly version = 1 as const;
      readonly vendor = "test";
      readonly limit = 3;
      validate(value: unknown) {
        return (value as number) > this.limit ? { issues: [{ message: "too much" }] } : { value };
      }
    }
    const outcome = await run(
      () => {},
      {},
      { bodies: ["2", "4"], queue: { body: { "~standard": new Own() } } },
    );
    expect(outcome.verdicts.toSorted()).toEqual(["ack", "dead"]);
    expect(outcome.dead[0]).toContain("does not fit");
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
    const slow: StandardSchema<unknown, unknown> = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: async (value) => {
          await world.platform.sleep(10_000);
          return { value };
        },
      },
    };
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
    const slow: StandardSchema<unknown, unknown> = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: async (value) => {
          await world.platform.sleep(2_000);
          return { value };
        },
      },
    };
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
    expect(world.told("started").length).toBe(3);
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

describe("a delivery that must not run", () => {
  test("because the engine could not read it is a dead letter with the reason", async () => {
    const world = new World();
    await world.add(2);
    const inner = world.broker.queue.bind(world.broker);
    world.broker.queue = (name, settings) => {
      const one = inner(name, settings);
      const exchange = one.exchange?.bind(one);
      if (exchange !== undefined) {
        one.exchange = async (request) => {
          const reply = await exchange(request);
          if (reply.claimed === undefined) return reply;
          const deliveries = reply.claimed.deliveries.map((delivery, index) =>
            index === 0 && delivery.id === "job0"
              ? { ...delivery, broken: "its record is cut short" }
              : delivery,
          );
          return { ...reply, claimed: { ...reply.claimed, deliveries } };
        };
      }
      return one;
    };
    const ran: string[] = [];
    const worker = await world.start((job) => ran.push(job.id), { prefetch: 2 });
    await world.untilEmpty();
    await world.platform.run(worker.stop());
    expect(ran).toEqual(["job1"]);
    expect((await world.peek("dead")).map((one) => one.error)).toEqual(["its record is cut short"]);
  });
});
