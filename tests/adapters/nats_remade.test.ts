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

/** Changes the consumer of normal jobs as an operator does. */
async function change(name: string, changes: object): Promise<void> {
  const path = `EDDY_JOBS_${name}.eddy_normal`;
  const { config } = await nats.operator.api<{ config: object }>(`CONSUMER.INFO.${path}`);
  const body = { stream_name: `EDDY_JOBS_${name}`, config: { ...config, ...changes } };
  expect((await nats.operator.api(`CONSUMER.DURABLE.CREATE.${path}`, body)).error).toBeUndefined();
}

/** Two workers' queues, of which the second has looked at the consumer more than a second ago: it is not looked at again within one. */
async function twoWorkers(name: string): Promise<readonly [BrokerQueue, BrokerQueue]> {
  const settings = { leaseMs: 5_000, requestTimeoutMs: 500 };
  let aheadMs = 0;
  const one = await nats.open(name, {}, settings);
  const two = await nats.open(name, { now: () => performance.now() + aheadMs }, settings);
  expect(await take(two)).toEqual([]);
  aheadMs = 1_000;
  return [one, two];
}

test("a consumer's ack_wait that is lowered under running workers is raised again by whoever is handed a job that another holds", async () => {
  const name = nats.name();
  const [one, two] = await twoWorkers(name);
  await change(name, { ack_wait: 100e6 });
  await put(one, "a");
  // The first one finds it too short by itself, for it has not looked yet.
  expect(ids(await takeAtLast(one))).toEqual(["a"]);
  await change(name, { ack_wait: 100e6 });
  expect(ids(await takeAtLast(two))).toEqual(["a"]);
  expect(await take(two)).toEqual([]);
  const { config } = await nats.operator.consumer(`EDDY_JOBS_${name}`, "eddy_normal");
  expect(config.ack_wait).toBe(5_000e6);
});

test("a max_deliver that would park jobs is refused by a running worker, too, once it shows", async () => {
  const name = nats.name();
  const [one, two] = await twoWorkers(name);
  await put(one, "a");
  await takeAtLast(one);
  await change(name, { ack_wait: 100e6, max_deliver: 3 });
  await takeAtLast(two);
  await expect(take(two)).rejects.toThrow("has a max_deliver of 3, at which the server parks jobs");
});
