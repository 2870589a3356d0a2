/** Managing a queue over several connections at the same time. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { DEAD, drain, ids, idsOf, put, settle, take } from "../support/conformance_steps.ts";
import { natsForFile } from "../support/nats_fixture.ts";

setDefaultTimeout(30_000);

const nats = natsForFile();

test("redrives at the same time put each dead letter back once, and together answer how many there were", async () => {
  const name = nats.name();
  const queues = await Promise.all([nats.open(name), nats.open(name), nats.open(name)]);
  const [queue] = queues;
  const all = idsOf("j", 300);
  await put(queue, ...all);
  await settle(queue, await take(queue, 300), DEAD);
  const counts = await Promise.all(queues.map((one) => one.redrive?.({ limit: 1_000 }) ?? 0));
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(300);
  expect(ids(await drain(queue)).sort()).toEqual([...all].sort());
});
