/** What is missing or of the wrong kind is refused by its name, from callers without types too, before anything is opened. */
import { describe, expect, test } from "bun:test";
import { drain } from "../../src/drain.ts";
import { Producer } from "../../src/producer.ts";
import { queue } from "../../src/queue.ts";
import { startWorker } from "../../src/start.ts";
import { define } from "../support/draining.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

const worker = define(() => {});
const untyped = (value: unknown) => value as never;
/** What a call throws or rejects with, and how much of the broker was asked. */
async function refusal(call: (world: World) => unknown): Promise<unknown> {
  const world = new World();
  let error: unknown;
  try {
    await call(world);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(TypeError);
  expect(world.broker.log).toEqual([]);
  expect(world.platform.timers).toBe(0);
  return (error as Error).message;
}

const ANSWERED = "give what defineWorker({ … }) answered";

describe("a worker and a drain", () => {
  const starts = [
    ["start a worker", startWorker],
    ["drain", drain],
  ] as const;

  test("refuse what is no worker", async () => {
    for (const [what, start] of starts) {
      const given: [unknown, string][] = [
        [undefined, "undefined"],
        [null, "null"],
        [{}, "an object"],
        [[], "an array"],
        ["worker.ts", "a string"],
        [{ kind: "eddy-worker" }, "of another kind"],
        [{ kind: "worker", queues: [] }, "of another kind"],
      ];
      for (const [definition, is] of given) {
        expect(await refusal((world) => start(untyped(definition), world))).toBe(
          `Cannot ${what}: the worker is ${is}; ${ANSWERED}`,
        );
      }
    }
  });

  test("refuse what is no broker, no platform, no log and no listener", async () => {
    for (const [what, start] of starts) {
      const given: [object, string][] = [
        [{ broker: undefined }, "broker is missing; give one, as in new MemoryBroker({ now })"],
        [{ broker: "memory:" }, "broker is a string; give one, as in new MemoryBroker({ now })"],
        [{ platform: undefined }, "platform is missing; give one, as in bunPlatform()"],
        [{ platform: () => {} }, "platform is a function; give one, as in bunPlatform()"],
        [{ log: console }, "log is an object; give a function"],
        [{ on: "claimed" }, "on is a string; give a function"],
        [{ on: null }, "on is null; give a function"],
      ];
      for (const [wrong, is] of given) {
        const message = await refusal(({ broker, platform }) =>
          start(worker, untyped({ broker, platform, ...wrong })),
        );
        expect(message).toBe(`Cannot ${what}: ${is}`);
      }
    }
  });

  test("a drain refuses a signal, queues and a budget of the wrong kind, too", async () => {
    const given: [object, string][] = [
      [{ signal: {} }, "signal is an object; give the signal of an AbortController"],
      [{ signal: null }, "signal is null; give the signal of an AbortController"],
      [{ queues: "work" }, "queues is a string; give a list of queues' names"],
      [{ queues: null }, "queues is null; give a list of queues' names"],
      [{ queues: ["work", 5] }, "queues[1] is a number; give a queue's name"],
      [{ budget: null }, "budget is null; give an object of maxMs, maxRequests, maxJobs, cpuMsPerJob"],
    ];
    for (const [wrong, is] of given) {
      const message = await refusal(({ broker, platform }) =>
        drain(worker, untyped({ broker, platform, ...wrong })),
      );
      expect(message).toBe(`Cannot drain: ${is}`);
    }
  });
});

describe("a producer", () => {
  const jobs = queue<unknown>("jobs");

  test("refuses what is no broker and no platform", async () => {
    for (const field of ["broker", "platform"]) {
      const message = await refusal(({ broker, platform }) => {
        new Producer(untyped({ broker, platform, [field]: undefined }));
      });
      expect(message).toStartWith(`Cannot make a producer: ${field} is missing; give one, as in `);
    }
  });

  test("refuses what is no queue, no list, no job and no options", async () => {
    const given: [(producer: Producer) => unknown, string][] = [
      [
        (to) => to.enqueue(untyped(null), 1),
        'Cannot enqueue: the queue is null; give what queue("NAME") answered',
      ],
      [
        (to) => to.enqueue(untyped("jobs"), 1),
        'Cannot enqueue: the queue is a string; give what queue("NAME") answered',
      ],
      [
        (to) => to.enqueueMany(untyped({}), []),
        'Cannot enqueue: the queue is an object; give what queue("NAME") answered',
      ],
      [(to) => to.enqueue(jobs, 1, untyped(null)), "Cannot enqueue to jobs: options is null; give an object"],
      [
        (to) =>
          to.enqueue(
            jobs,
            1,
            untyped(() => {}),
          ),
        "Cannot enqueue to jobs: options is a function; give an object",
      ],
      [
        (to) => to.enqueueMany(jobs, untyped(null)),
        "Cannot enqueue to jobs: jobs is null; give a list of { body }",
      ],
      [
        (to) => to.enqueueRaw(jobs, untyped("ab")),
        "Cannot enqueue to jobs: jobs is a string; give a list of { body }",
      ],
      [
        (to) => to.enqueueMany(jobs, [untyped(null)]),
        "Cannot enqueue job 0 to jobs: it is null; give { body }",
      ],
      [
        (to) => to.enqueueRaw(jobs, [{ body: "1" }, untyped(5)]),
        "Cannot enqueue job 1 to jobs: it is a number; give { body }",
      ],
    ];
    for (const [call, message] of given) {
      expect(await refusal(({ broker, platform }) => call(new Producer({ broker, platform })))).toBe(message);
    }
  });
});

test("a batch handler's options of the wrong kind are refused", async () => {
  expect(await refusal(() => queue("jobs").handleBatch(() => {}, untyped(null)))).toBe(
    "Cannot handle queue jobs: options is null; give an object",
  );
});
