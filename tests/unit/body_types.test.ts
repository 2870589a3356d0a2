/** The types of bodies. What the compiler must refuse is marked: `npm run check` fails where it does not, or where it refuses what runs. */
import { expect, test } from "bun:test";
import * as v from "valibot";
import { defineWorker, Producer, queue } from "../../src/mod.ts";
import { World } from "../support/world.ts";

/** A number may be left out, and is sent as text. */
const Letter = v.object({ to: v.string(), copies: v.optional(v.pipe(v.string(), v.transform(Number)), "1") });

test("a body is enqueued as the schema takes it, and handled as the schema makes it", async () => {
  const world = new World();
  const producer = new Producer({ broker: world.broker, platform: world.platform });
  const letters = queue("letters", { body: Letter });
  await producer.enqueue(letters, { to: "ada" });
  await producer.enqueueMany(letters, [{ body: { to: "bob", copies: "3" }, priority: "low" }]);
  const copies: number[] = [];
  const worker = defineWorker({
    queues: [
      letters.handle((job) => {
        const number: number = job.body.copies;
        copies.push(number);
        // @ts-expect-error: it is a number by now.
        const text: string = job.body.copies;
        return text;
      }),
      queue("stacks", { body: Letter }).handleBatch((jobs) => {
        for (const job of jobs) copies.push(job.body.copies);
      }),
    ],
  });
  // @ts-expect-error: not what the schema takes, and refused when it runs.
  const faulty = producer.enqueue(letters, { to: "ada", copies: 3 });
  await expect(faulty).rejects.toThrow("copies");
  // @ts-expect-error: the same of many.
  await expect(producer.enqueueMany(letters, [{ body: { to: 5 } }])).rejects.toThrow("to");
  const running = await world.startDefinition(worker);
  await world.untilEmpty("letters");
  await world.platform.run(running.stop());
  expect(copies).toEqual([1, 3]);
});

test("a queue without a schema has the one type that it is given", async () => {
  const world = new World();
  const producer = new Producer({ broker: world.broker, platform: world.platform });
  const sums = queue<{ a: number }>("sums");
  await producer.enqueue(sums, { a: 1 });
  // @ts-expect-error
  await producer.enqueue(sums, { a: "1" });
  // @ts-expect-error
  await producer.enqueue(sums, { b: 1 });
  sums.handle((job) => job.body.a);
  // @ts-expect-error
  sums.handle((job) => job.body.b);
  await producer.enqueue(queue("anything"), ["goes", 1]);
  expect(await world.peek("ready", "sums")).toHaveLength(3);
});
