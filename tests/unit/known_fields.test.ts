/** Misspelt options of callers without types are refused by name. */
import { expect, test } from "bun:test";
import { type BudgetOptions, drain } from "../../src/drain.ts";
import { startWorker } from "../../src/start.ts";
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
    "Cannot start a worker: the second argument is undefined; give an object of broker",
  );
  expect(broker.requests).toBe(0);
});
