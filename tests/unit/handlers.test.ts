import { describe, expect, test } from "bun:test";
import { PermanentError } from "../../src/errors.ts";
import type { Handler } from "../../src/queue.ts";
import { run } from "../support/handling.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

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
    [
      "rejects with nothing",
      () => Promise.reject(undefined),
      "The value undefined was thrown instead of an Error",
    ],
    [
      "throws an object",
      () => {
        throw { code: 7 };
      },
      "An object was thrown instead of an Error",
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
      "An object was thrown instead of an Error",
    ],
    [
      "throws what cannot even be looked at",
      () => {
        const { proxy, revoke } = Proxy.revocable({}, {});
        revoke();
        throw proxy;
      },
      "An object was thrown instead of an Error",
    ],
    [
      "rejects with what throws when its kind is asked",
      () =>
        Promise.reject(
          new Proxy(new Error("no luck"), {
            getPrototypeOf() {
              throw new Error("no kind");
            },
          }),
        ),
      "An object was thrown instead of an Error",
    ],
    [
      "takes its own delivery away",
      (job) => {
        Object.assign(job, { held: null });
      },
      "TypeError: Attempted to assign to readonly property.",
    ],
    [
      "forges what it has cost",
      (job) => {
        Object.assign(job, { fetches: Number.NaN });
      },
      "TypeError: Attempted to assign to readonly property.",
    ],
    [
      "throws an error named by a symbol",
      () => {
        throw Object.assign(new Error("x"), { name: Symbol("odd") });
      },
      "An object was thrown instead of an Error",
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

  test("permanently, after it asked for a retry: dead at once all the same", async () => {
    const { verdicts, dead } = await run((job) => {
      job.retry({ delayMs: 60_000 });
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

  test("retry: a misspelt option is refused likewise", async () => {
    for (const [options, text] of [
      [{ delay: 5_000 }, "delay is no option; use some of delayMs, reason"],
      [5_000, "options is a number; give an object of delayMs, reason"],
    ] as const) {
      const { dead } = await run((job) => job.retry(options as object), { maxAttempts: 1 });
      expect(dead[0]).toMatch(/TypeError: Cannot retry job \S+: /);
      expect(dead[0]).toContain(text);
    }
  });

  test("retry: its event says that it was asked for, and why if that was said; a throw's does not", async () => {
    const world = new World();
    await world.add(1);
    const worker = await world.start((job) => {
      if (job.attempt === 1) job.retry({ delayMs: 0 });
      if (job.attempt === 2) job.retry({ delayMs: 0, reason: "not yet" });
      if (job.attempt === 3) throw new Error("no");
    });
    await world.untilEmpty();
    await world.platform.run(worker.stop());
    const told = world.told("finished").map(({ verdict, asked, error }) => ({ verdict, asked, error }));
    expect(told).toEqual([
      { verdict: "retry", asked: true, error: undefined },
      { verdict: "retry", asked: true, error: "not yet" },
      { verdict: "retry", asked: undefined, error: "Error: no" },
      { verdict: "ack", asked: undefined, error: undefined },
    ]);
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
