/** Copies of claims. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { ACK, ids, idsOf, put, settle } from "../support/conformance_steps.ts";
import { natsForFile } from "../support/nats_fixture.ts";

setDefaultTimeout(30_000);

const nats = natsForFile();

test("a copy of a claim answers with what it holds, whatever ended while it was under way", async () => {
  const queue = await nats.open(nats.name());
  await put(queue, "a");
  const one = await queue.claim({ leaseId: "loop.1", max: 1, waitMs: 0 });
  const waiting = queue.claim({ leaseId: "loop.2", max: 1, waitMs: 5_000 });
  // The first end that there is.
  await settle(queue, one.deliveries, ACK);
  await put(queue, "b", "c");
  const first = await waiting;
  expect(ids(first.deliveries)).toEqual(["b"]);
  expect(ids((await queue.claim({ leaseId: "loop.2", max: 1, waitMs: 0 })).deliveries)).toEqual(["b"]);
});

test("a copy of a claim whose lease is over takes nothing, whatever other ids begin as its own", async () => {
  const queue = await nats.open(nats.name());
  await put(queue, ...idsOf("a", 10));
  const finish = async (leaseId: string) => {
    const { deliveries } = await queue.claim({ leaseId, max: 1, waitMs: 0 });
    await settle(queue, deliveries, ACK);
    return deliveries.length;
  };
  for (const leaseId of ["x.1", "a.b.1", "a.1", "a.b.2", "x.2"]) expect(await finish(leaseId)).toBe(1);
  for (const leaseId of ["x.1", "a.b.1", "a.1", "a.b.2", "x.2"]) expect(await finish(leaseId)).toBe(0);
});
