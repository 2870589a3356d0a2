/** Streams and consumers of JetStream that are deleted, made anew or changed under a running worker. */
import { expect, setDefaultTimeout, test } from "bun:test";
import type { BrokerQueue, Delivery } from "../../src/broker.ts";
import { ACK, DEAD, ids, leaseId, put, settle, take } from "../support/conformance_steps.ts";
import { natsForFile } from "../support/nats_fixture.ts";

setDefaultTimeout(30_000);

const nats = natsForFile();

/** Claims until something comes: a consumer that is gone is noticed by a claim that gets no answer. */
async function takeAtLast(queue: BrokerQueue): Promise<readonly Delivery[]> {
  const deadline = performance.now() + 10_000;
  for (;;) {
    const taken = (await queue.claim({ leaseId: leaseId(), max: 10, waitMs: 500 })).deliveries;
    if (taken.length > 0) return taken;
    if (performance.now() > deadline) throw new Error("Waited ten seconds in vain for a job");
  }
}

test("a stream that was made anew counts from 1: a job of the new one is not taken for the one of the old that is held", async () => {
  const name = nats.name();
  const queue = await nats.open(name);
  await put(queue, "old");
  const old = await take(queue);
  await nats.operator.api(`STREAM.DELETE.EDDY_JOBS_${name}`);
  const other = await nats.open(name);
  await put(other, "new");
  expect(ids(await takeAtLast(queue))).toEqual(["new"]);
  // The job that was lost with its stream must not end the one that has its number now.
  expect(await settle(queue, old, ACK)).toEqual(["lost"]);
  expect(await other.sizes?.()).toMatchObject({ ready: 0, held: 1 });
});

test("a dead letter of a stream that was made anew is not taken for the copy of one of the old", async () => {
  const name = nats.name();
  const queue = await nats.open(name);
  for (const id of ["old", "new"]) {
    await queue.open();
    await put(queue, id);
    expect(await settle(queue, await takeAtLast(queue), DEAD)).toEqual(["done"]);
    await nats.operator.api(`STREAM.DELETE.EDDY_JOBS_${name}`);
  }
  expect((await queue.peek?.("dead", 10))?.map(({ id }) => id)).toEqual(["old", "new"]);
});
