/** What stays in memory of jobs that came together, while one of them is held for long. */
import { expect, setDefaultTimeout, test } from "bun:test";
import type { Delivery } from "../../src/broker.ts";
import { ACK, ids, idsOf, job, put, settle, take } from "../support/conformance_steps.ts";
import { natsForFile } from "../support/nats_fixture.ts";

setDefaultTimeout(30_000);

const nats = natsForFile();

const BODY_BYTES = 60_000;
const BATCH = 16;
const CLAIMS = 50;

const grownBy = (from: number): number => {
  Bun.gc(true);
  return process.memoryUsage().external - from;
};

test("of a batch of which one job runs on, nothing but that job is kept from its first renewal on; and it is whole", async () => {
  const queue = await nats.open(nats.name());
  const body = (id: string) => id.padEnd(BODY_BYTES, "x");
  for (let claims = 0; claims < CLAIMS; claims++) {
    await put(queue, ...idsOf(`a${claims}-`, BATCH).map((id) => job(id, { body: body(id) })));
  }
  const before = grownBy(0);
  const running: Delivery[] = [];
  for (let claims = 0; claims < CLAIMS; claims++) {
    const [one, ...others] = await take(queue, BATCH);
    running.push(one as Delivery);
    await settle(queue, others, ACK);
  }
  expect(await queue.renew(running.map(({ leaseId }) => leaseId))).toEqual(running.map(() => "held"));
  // All that came is 48 MB, once as bytes and once as text.
  const most = 4 * CLAIMS * BODY_BYTES;
  const deadline = performance.now() + 10_000;
  while (grownBy(before) > most && performance.now() < deadline) await Bun.sleep(10);
  expect(grownBy(before)).toBeLessThan(most);
  // A copy is made of each, and each is ended.
  await settle(queue, running, { kind: "release" });
  const again = await take(queue, CLAIMS);
  expect(ids(again)).toEqual(ids(running));
  for (const one of again) expect(one.body === body(one.id)).toBe(true);
  expect(await settle(queue, again, ACK)).toEqual(again.map(() => "done"));
  expect(await queue.sizes?.()).toMatchObject({ ready: 0, held: 0 });
});

test("whoever changes the list of its deliveries changes nothing of the lease", async () => {
  const queue = await nats.open(nats.name());
  await put(queue, ...idsOf("a", 3));
  const list = (await take(queue, 3, "spoiled")) as Delivery[];
  const [first] = list.splice(0, 2);
  expect(ids(await take(queue, 3, "spoiled"))).toEqual(idsOf("a", 3));
  expect(await settle(queue, [{ ...(first as Delivery) }], ACK)).toEqual(["done"]);
  expect(ids(await take(queue, 3, "spoiled"))).toEqual(["a2", "a3"]);
});
