/** A schema that throws rejects the body it was asked about, and nothing of what it threw is told. */
import { expect, test } from "bun:test";
import { defineWorker, Producer, queue } from "../../src/mod.ts";
import type { StandardSchema } from "../../src/schemas.ts";
import { expectRefusal, memoryBroker, openApp, platform, post } from "./fixture.ts";

const REASON = "The queue's schema threw instead of answering; mend the schema";

/** Throws what is no Error at a 2, rejects at a 3. */
const throwing: StandardSchema<unknown, number> = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate(value) {
      if (value === 2) throw "SECRETBODY";
      if (value === 3) return Promise.reject(new Error("SECRETBODY"));
      return { value: value as number };
    },
  },
};
const numbers = queue("numbers", { body: throwing });
const definition = defineWorker({ queues: [numbers.handle(() => {})] });

test("over HTTP its lines are named and the others are taken", async () => {
  const app = openApp({ definition });
  const answer = await post(app, "/v1/queues/numbers/jobs", "1\n2\n3\n4\n", {
    "Content-Type": "application/x-ndjson",
  });
  expect(answer.status).toBe(207);
  expect((answer.json.accepted as { line: number }[]).map((one) => one.line)).toEqual([1, 4]);
  expect(answer.json.rejected).toEqual([
    { line: 2, reason: REASON },
    { line: 3, reason: REASON },
  ]);
  const one = await post(app, "/v1/queues/numbers/jobs", "2");
  expectRefusal(one, 422, "invalid-body", "SECRETBODY");
});

test("a schema that answers only once does not undo what it let pass", async () => {
  let asked = 0;
  const once: StandardSchema<unknown, number> = {
    "~standard": {
      version: 1,
      vendor: "test",
      validate(value) {
        asked += 1;
        if (asked > 1) throw new TypeError("SECRETBODY");
        return { value: value as number };
      },
    },
  };
  const app = openApp({
    definition: defineWorker({ queues: [queue("q", { body: once }).handle(() => {})] }),
  });
  expect((await post(app, "/v1/queues/q/jobs", "1")).status).toBe(201);
});

test("a producer says so", async () => {
  const producer = new Producer({ broker: memoryBroker(), platform });
  for (const body of [2, 3]) {
    const told = {
      name: "InvalidBodyError",
      message: `Cannot enqueue job 0 to numbers: ${REASON}`,
      issues: [{ path: "", message: REASON }],
    };
    await expect(producer.enqueue(numbers, body)).rejects.toMatchObject(told);
    await expect(producer.enqueueRaw(numbers, [{ body: String(body) }])).rejects.toMatchObject(told);
  }
});
