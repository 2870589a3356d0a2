/** A claim is bounded by the bytes of its bodies: those that it hands out, takes back, and moves as come due. */

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { BrokerQueue, Priority } from "../../src/broker.ts";
import { ACK, claim, drain, ids, idsOf, job, put, settle, take } from "../support/conformance_steps.ts";
import { Scratch } from "../support/sqlite_scratch.ts";
import { SqliteTap } from "../support/sqlite_tap.ts";

const MIB = 1024 * 1024;
const TEXT = "x".repeat(MIB);

let scratch: Scratch;
let tap: SqliteTap;
let nowMs: number;
let queue: BrokerQueue;

beforeEach(async () => {
  scratch = new Scratch();
  tap = new SqliteTap();
  nowMs = 1_700_000_000_000;
  queue = await scratch.queue(scratch.database({}, tap.listen), () => nowMs);
});
afterEach(() => scratch.remove());

function count(where: string): number {
  const db = new Database(scratch.file);
  const { n } = db.query(`SELECT count(*) AS n FROM ${where}`).get() as { n: number };
  db.close();
  return n;
}

test.each([
  ["texts", TEXT],
  ["bytes", new Uint8Array(MIB)],
  ["texts of more bytes than characters", "é".repeat(MIB / 2)],
])("16 MiB of %s come at once, and that there is more is told", async (_, body) => {
  await put(queue, ...idsOf("a", 36).map((id) => job(id, { body })));
  const first = await claim(queue, 1000);
  expect(ids(first.deliveries)).toEqual(idsOf("a", 16));
  expect(first.nextDueMs).toBe(0);
  expect((await claim(queue, 1000)).deliveries).toHaveLength(16);
  const last = await claim(queue, 1000);
  expect(ids(last.deliveries)).toEqual(["a33", "a34", "a35", "a36"]);
  expect(last.nextDueMs).toBe(30_000);
});

test("a copy of a claim cut short answers the same", async () => {
  await put(queue, ...idsOf("a", 20).map((id) => job(id, { body: TEXT })));
  const request = { leaseId: "one", max: 1000, waitMs: 0 };
  const { deliveries } = await queue.claim(request);
  expect(deliveries).toHaveLength(16);
  expect((await queue.claim(request)).deliveries).toEqual(deliveries);
});

test("one job always comes, and of the largest no second", async () => {
  const body = new Uint8Array(16 * MIB);
  await put(queue, "small");
  for (const id of ["b", "c"]) await put(queue, job(id, { body }));
  expect(ids(await take(queue))).toEqual(["small"]);
  expect(ids(await take(queue))).toEqual(["b"]);
  expect(ids(await take(queue))).toEqual(["c"]);
});

test("small jobs come in full batches", async () => {
  await put(queue, ...idsOf("a", 1000));
  expect(ids(await take(queue, 1000))).toEqual(idsOf("a", 1000));
});

test("a level that waits is not starved by large jobs above it", async () => {
  const of = (priority: Priority, prefix: string, size: number, count: number) =>
    idsOf(prefix, count).map((id) => job(id, { priority, body: "x".repeat(size) }));
  await put(queue, ...of("low", "l", 1, 3));
  for (let i = 0; i < 3; i += 1) await put(queue, ...of("high", `h${i}.`, 5 * MIB, 5));
  const order: string[] = [];
  for (let i = 0; i < 4; i += 1) {
    const deliveries = await take(queue, 100);
    order.push(deliveries.map((one) => one.id[0]).join(""));
    await settle(queue, deliveries, ACK);
  }
  // Seven high ones, over the claims, then a low one; within a claim the high ones stand first.
  expect(order).toEqual(["hhh", "hhh", "hhhl", "hhh"]);
});

test("of large bodies far fewer are measured than may be claimed", async () => {
  await put(queue, ...idsOf("a", 100).map((id) => job(id, { body: TEXT })));
  tap.runs.length = 0;
  expect(await take(queue, 1000)).toHaveLength(16);
  const measured = tap.runs.filter((run) => run.sql.startsWith("SELECT") && /\bbody\b/.test(run.sql));
  expect(measured.flatMap((run) => run.rows).length).toBeLessThanOrEqual(48);
});

test("for a claim of one job none is measured", async () => {
  await put(queue, ...idsOf("a", 3).map((id) => job(id, { body: TEXT })));
  tap.runs.length = 0;
  expect(ids(await take(queue, 1))).toEqual(["a1"]);
  expect(tap.runs.filter((run) => run.sql.includes("length("))).toEqual([]);
});

test("so much comes due at once, the rest with the next claims", async () => {
  await put(queue, ...idsOf("a", 40).map((id) => job(id, { body: TEXT, delayMs: 10 })));
  nowMs += 10;
  const first = await claim(queue, 1);
  expect([first.deliveries.length, count("eddy_jobs WHERE state = 'delayed'")]).toEqual([1, 24]);
  expect(await drain(queue)).toHaveLength(39);
});

test("so much is taken back at once, whole leases at a time", async () => {
  await put(queue, ...idsOf("a", 48).map((id) => job(id, { body: TEXT })));
  for (let i = 0; i < 3; i += 1) expect(await take(queue, 16)).toHaveLength(16);
  nowMs += 30_000;
  expect(ids(await take(queue, 1))).toEqual(["a1"]);
  // Two that ran out, and the one just taken.
  expect(count("eddy_leases WHERE ended = 0")).toBe(3);
  expect(await drain(queue)).toHaveLength(47);
});
