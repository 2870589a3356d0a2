/** Streams that are full while delayed jobs come due: the others go on, and make room for them. */
import { expect, setDefaultTimeout, test } from "bun:test";
import type { BrokerQueue } from "../../src/broker.ts";
import { ACK, ids, job, put, settle, take } from "../support/conformance_steps.ts";
import { natsForFile } from "../support/nats_fixture.ts";

setDefaultTimeout(30_000);

const nats = natsForFile();

async function limit(name: string, max_msgs: number): Promise<void> {
  const { config } = await nats.operator.api<{ config: object }>(`STREAM.INFO.EDDY_JOBS_${name}`);
  const changed = await nats.operator.api(`STREAM.UPDATE.EDDY_JOBS_${name}`, { ...config, max_msgs });
  expect(changed.error).toBeUndefined();
}

async function untilDue(queue: BrokerQueue): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (((await queue.sizes?.())?.delayed ?? 0) > 0) {
    if (performance.now() > deadline) throw new Error("Waited ten seconds in vain until jobs were due");
    await Bun.sleep(5);
  }
}

test("what is ready is handed out, what is due comes when there is room, once each, and the claim that can bring nothing says why", async () => {
  const name = nats.name();
  const queue = await nats.open(name);
  const delayed = Array.from({ length: 4 }, (_, n) => job(`due-${n}`, { delayMs: 100 }));
  await put(queue, ...delayed, "a", "b");
  // Four delayed ones, two ready ones, and the message by which the clock is read.
  await limit(name, 7);
  await untilDue(queue);
  const ready = await take(queue, 10);
  expect(ids(ready)).toEqual(["a", "b"]);
  const failed = await take(queue).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(failed).toMatchObject({ name: "BrokerError" });
  expect((failed as Error).message).toContain("maximum messages exceeded; it is full: make room");
  expect(await settle(queue, ready, ACK)).toEqual(["done", "done"]);
  const due: string[] = [];
  while (due.length < 4) {
    const some = await take(queue, 10);
    due.push(...ids(some));
    await settle(queue, some, ACK);
  }
  expect(due.sort()).toEqual(["due-0", "due-1", "due-2", "due-3"]);
  expect(await queue.sizes?.()).toMatchObject({ ready: 0, delayed: 0, held: 0 });
});

test("the server's clock is not read from an old message that is there when a full stream takes no new one", async () => {
  const name = nats.name();
  const earlier = await nats.open(name);
  await put(earlier, job("first", { delayMs: 60_000 }));
  await limit(name, 2);
  // So much would the new one be early.
  await Bun.sleep(200);
  const queue = await nats.open(name);
  const failed = await put(queue, job("second", { delayMs: 60_000 })).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect((failed as Error).message).toContain("maximum messages exceeded; it is full: make room");
  await limit(name, 10);
  const [before] = (await queue.peek?.("delayed", 10)) ?? [];
  expect(before?.id).toBe("first");
  await put(queue, job("second", { delayMs: 60_000 }));
  const due = await nats.operator.api<{ state: { subjects: Record<string, number> } }>(
    `STREAM.INFO.EDDY_JOBS_${name}`,
    { subjects_filter: `eddy.jobs.${name}.later.>` },
  );
  const [first, second] = Object.keys(due.state.subjects)
    .map((subject) => Number(subject.split(".")[4]))
    .sort((a, b) => a - b);
  expect((second as number) - (first as number)).toBeGreaterThanOrEqual(200);
});
