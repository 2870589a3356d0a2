import { expect, test } from "bun:test";
import { MemoryBroker } from "../../adapters/memory.ts";
import type { Delivery } from "../../src/broker.ts";
import { ACK, claim, DEAD, drain, ids, idsOf, job, put, settle, take } from "../support/conformance_steps.ts";

const SETTINGS = { leaseMs: 1000, requestTimeoutMs: 1000, dedupeWindowMs: 1000 };

/** A queue on a clock that the test moves. */
function start(options: { wallNow?: () => number } = {}) {
  const clock = { ms: 0 };
  const broker = new MemoryBroker({ now: () => clock.ms, ...options });
  return { clock, broker, queue: broker.queue("work", SETTINGS) };
}

test("times that people see are of the wall clock, all else goes by the broker's own", async () => {
  let wall = 1_700_000_000_000;
  const { clock, queue } = start({ wallNow: () => wall });
  await put(queue, job("later", { delayMs: 500 }), "a");
  clock.ms += 100;
  wall += 3_600_100; // Somebody set the wall clock.
  expect((await queue.peek!("delayed", 1))[0]).toMatchObject({
    enqueuedAt: 1_700_000_000_000,
    dueAt: 1_700_003_600_100 + 400,
  });
  await settle(queue, await take(queue), DEAD);
  expect((await queue.peek!("dead", 1))[0]?.diedAt).toBe(1_700_003_600_100);
  expect(await take(queue)).toEqual([]);
  clock.ms += 400;
  expect(ids(await take(queue))).toEqual(["later"]);
});

test("without a wall clock all times are the broker's", async () => {
  const { clock, queue } = start();
  clock.ms = 42;
  await put(queue, "a");
  expect((await take(queue))[0]?.enqueuedAt).toBe(42);
});

test("two runs of the same verbs on the same clock give the very same answers", async () => {
  const run = async () => {
    const { clock, queue } = start();
    const seen: unknown[] = [];
    await put(queue, ...idsOf("a", 20).map((id, i) => job(id, { priority: i % 3 ? "high" : "low" })));
    for (let i = 0; i < 10; i += 1) {
      clock.ms += 300;
      const reply = await queue.claim({ leaseId: `lease-${i}`, max: 3, waitMs: 0 });
      seen.push(reply);
      if (i % 2) seen.push(await settle(queue, reply.deliveries, ACK));
    }
    seen.push(await queue.sizes!());
    return seen;
  };
  expect(await run()).toEqual(await run());
});

test("connections share the engine, and each is closed by itself", async () => {
  const { broker, queue } = start();
  const other = broker.connect();
  await put(queue, "a");
  await broker.close();
  const theirs = other.queue("work", SETTINGS);
  expect(ids(await take(theirs))).toEqual(["a"]);
  expect(claim(queue, 1)).rejects.toThrow("Cannot claim: the broker is closed");
});

test("several news of one turn make one call", async () => {
  const { queue } = start();
  let calls = 0;
  await queue.watch!(
    () => {
      calls += 1;
    },
    () => {},
  );
  await Promise.all([put(queue, "a", "b"), put(queue, "c"), put(queue, "d")]);
  expect(calls).toBe(1);
});

test("however many came due together, all come, by their due time", async () => {
  const { clock, queue } = start();
  for (let i = 0; i < 3; i += 1) {
    await put(queue, ...idsOf(`d${i}.`, 1000).map((id) => job(id, { delayMs: 10 })));
  }
  clock.ms += 10;
  const [first] = (await take(queue, 1)) as [Delivery];
  expect(first.id).toBe("d0.1");
  expect(await queue.sizes!()).toMatchObject({ ready: 2999, delayed: 0, held: 1 });
  expect(await drain(queue)).toHaveLength(2999);
});

test("a body larger than the limit is refused, by bytes, and not repeated", async () => {
  const { queue } = start();
  const { maxBodyBytes } = queue.limits;
  const fits = "é".repeat(maxBodyBytes / 2);
  await put(queue, job("fits", { body: fits }));
  const error = await put(queue, job("large", { body: `${fits}e` })).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(RangeError);
  expect((error as RangeError).message).toBe(
    `Cannot enqueue job large: its body is larger than maxBodyBytes, which is ${maxBodyBytes}`,
  );
  expect(put(queue, job("bytes", { body: new Uint8Array(maxBodyBytes + 1) }))).rejects.toThrow(
    "maxBodyBytes",
  );
});

test("arguments that mean nothing are refused, each with its name", async () => {
  const { broker, queue } = start();
  expect(() => broker.queue("work", { ...SETTINGS, leaseMs: 0 })).toThrow("leaseMs is 0");
  expect(() => broker.queue("work", { ...SETTINGS, dedupeWindowMs: 1.5 })).toThrow("dedupeWindowMs is 1.5");
  expect(() => broker.queue("work", { ...SETTINGS, requestTimeoutMs: Number.NaN })).toThrow(
    "requestTimeoutMs is NaN",
  );
  expect(claim(queue, 1, "a b")).rejects.toThrow('leaseId is "a b"');
  expect(queue.claim({ leaseId: "l", max: 1, waitMs: -1 })).rejects.toThrow("waitMs is -1");
  expect(put(queue, job("a|b"))).rejects.toThrow('id is "a|b"');
  expect(put(queue, job("a", { delayMs: Number.NaN }))).rejects.toThrow("delayMs is NaN");
  expect(queue.enqueue("", [job("a")])).rejects.toThrow('requestId is ""');
});
