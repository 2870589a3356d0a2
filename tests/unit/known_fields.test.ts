/** Misspelt options of callers without types are refused by name. */
import { expect, test } from "bun:test";
import { MemoryBroker } from "../../adapters/memory.ts";
import { RedisBroker } from "../../adapters/redis/mod.ts";
import { denoDeployLimits } from "../../runtimes/deno/limits.ts";
import { type BudgetOptions, drain } from "../../src/drain.ts";
import { createApp } from "../../src/http/app.ts";
import { Producer } from "../../src/producer.ts";
import { queue } from "../../src/queue.ts";
import { startWorker } from "../../src/start.ts";
import { defineWorker } from "../../src/worker.ts";
import { define } from "../support/draining.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

const definition = define(() => {});
const untyped = (value: unknown) => value as never;

test("a drain refuses an unknown option, before anything is asked of the broker", async () => {
  const { broker, platform } = new World();
  const refused = drain(definition, untyped({ broker, platform, bugdet: { maxMs: 5 } }));
  await expect(refused).rejects.toThrow(
    new TypeError(
      "Cannot drain: bugdet is no option; use some of broker, platform, log, on, queues, signal, budget",
    ),
  );
  expect(broker.requests).toBe(0);
});

test("and an unknown field of its budget", async () => {
  const { broker, platform } = new World();
  const budgeted = (budget: unknown) => drain(definition, { broker, platform, budget: untyped(budget) });
  await expect(budgeted({ maxMS: 5 })).rejects.toThrow(
    new TypeError(
      "Cannot drain: budget.maxMS is no option; use some of maxMs, maxRequests, maxJobs, cpuMsPerJob",
    ),
  );
  await expect(budgeted(5_000)).rejects.toThrow("Cannot drain: budget is a number; give an object of maxMs");
  expect(broker.requests).toBe(0);
});

test("known ones may be given as undefined", async () => {
  const { broker, platform } = new World();
  const budget: BudgetOptions = {
    maxMs: undefined,
    maxRequests: undefined,
    maxJobs: undefined,
    cpuMsPerJob: undefined,
  };
  const rest = { log: undefined, on: undefined, queues: undefined, signal: undefined };
  const draining = drain(definition, { broker, platform, budget, ...rest });
  expect(await platform.run(draining)).toMatchObject({ stopped: "empty" });
});

test("a worker refuses an unknown option, and none at all", async () => {
  const { broker, platform } = new World();
  await expect(startWorker(definition, untyped({ broker, platform, onn: () => {} }))).rejects.toThrow(
    new TypeError("Cannot start a worker: onn is no option; use some of broker, platform, log, on"),
  );
  await expect(startWorker(definition, untyped(undefined))).rejects.toThrow(
    "Cannot start a worker: options is undefined; give an object of broker",
  );
  expect(broker.requests).toBe(0);
});

/** Everything that takes options, by what cannot be done with a misspelt one. */
const TAKERS: Readonly<Record<string, (options: unknown) => unknown>> = {
  "define a worker": (options) => defineWorker(untyped(options)),
  "define queue work": (options) => queue("work", untyped(options)),
  "consume queue work": (options) =>
    defineWorker({ queues: [queue("work").handle(() => {}, untyped(options))] }),
  "make a producer": (options) => new Producer(untyped(options)),
  "make the HTTP app": (options) => createApp(untyped(options)),
  "set the limits of Deno Deploy": (options) => denoDeployLimits("free", untyped(options)),
  "use the Redis broker": (options) => new RedisBroker(untyped(options)),
  "use the memory broker": (options) => new MemoryBroker(untyped(options)),
};

test.each(Object.keys(TAKERS))("to %s takes known options alone, and no list of them", (what) => {
  const refusal = (options: unknown): unknown => {
    try {
      TAKERS[what]?.(options);
    } catch (error) {
      return error;
    }
    return undefined;
  };
  for (const [options, text] of [
    [{ hushed: 1 }, "hushed is no option; use some of "],
    [["x"], "options is an array; give an object of "],
    [new Map(), "options is a Map; give an object of "],
  ] as const) {
    const error = refusal(options);
    expect(error).toBeInstanceOf(TypeError);
    expect((error as Error).message).toStartWith(`Cannot ${what}: ${text}`);
  }
});

test("an enqueue's options too", async () => {
  const { broker, platform } = new World();
  const producer = new Producer({ broker, platform });
  await expect(producer.enqueue(queue("work"), 1, untyped({ delay: 5 }))).rejects.toThrow(
    new TypeError(
      "Cannot enqueue job 0 to work: delay is no option; use some of body, id, delayMs, priority, headers",
    ),
  );
  expect(broker.requests).toBe(0);
});
