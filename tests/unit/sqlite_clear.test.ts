/** `clear` and `redrive` go in slices that let others in, and touch nothing that came after they began. */

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { BrokerQueue, Delivery } from "../../src/broker.ts";
import { DEAD, ids, idsOf, job, put, settle, take } from "../support/conformance_steps.ts";
import { Scratch } from "../support/sqlite_scratch.ts";
import { SqliteTap } from "../support/sqlite_tap.ts";

let scratch: Scratch;
let tap: SqliteTap;
let nowMs: number;
let queue: BrokerQueue;
let other: BrokerQueue;

beforeEach(async () => {
  scratch = new Scratch();
  tap = new SqliteTap();
  nowMs = 1_700_000_000_000;
  queue = await scratch.queue(scratch.database({}, tap.listen), () => nowMs);
  other = await scratch.queue(undefined, () => nowMs);
});
afterEach(() => scratch.remove());

/** Puts many ready jobs there, `a1` the first. */
async function fill(count: number, delayMs = 0): Promise<void> {
  const all = idsOf("a", count).map((id) => job(id, { delayMs }));
  for (let at = 0; at < count; at += 1000) await put(other, ...all.slice(at, at + 1000));
}

async function bury(count: number): Promise<void> {
  await fill(count);
  for (let left = count; left > 0; left -= 1000) {
    await settle(other, await take(other, Math.min(left, 1000)), DEAD);
  }
}

/** In one go after the first slice and before the second: all jobs are gone and two others there, in their places if they could be. */
async function replaceAll(isSlice: (run: { sql: string }) => boolean, state: string): Promise<void> {
  while (tap.perTransaction(isSlice).length === 0) await new Promise((resolve) => setImmediate(resolve));
  const db = new Database(scratch.file);
  db.run("DELETE FROM eddy_jobs WHERE queue = 1");
  for (const id of ["new-1", "new-2"]) {
    db.run("INSERT INTO eddy_jobs (queue, state, id, body) VALUES (1, ?, ?, '{}')", [state, id]);
  }
  db.close();
}

const isClear = (run: { sql: string }) => run.sql.startsWith("DELETE FROM eddy_jobs");
const isRevival = (run: { sql: string }) => run.sql.includes("attempts = 0");

describe("clear", () => {
  test("goes in slices, and what comes in between, in the place of what went, is kept", async () => {
    await fill(3500);
    const clearing = queue.clear!(["ready"]);
    await replaceAll(isClear, "ready");
    expect(await clearing).toBe(1000);
    expect(ids(await take(other))).toEqual(["new-1", "new-2"]);
  });

  test("no slice is of more than 1,000 jobs", async () => {
    await fill(3500);
    expect(await queue.clear!(["ready", "delayed", "dead"])).toBe(3500);
    expect(tap.perTransaction(isClear)).toEqual([1000, 1000, 1000, 500]);
  });

  test("nor of many more than 4 MiB", async () => {
    const body = "x".repeat(1024 * 1024);
    await put(other, ...idsOf("text", 6).map((id) => job(id, { body })));
    await put(other, ...idsOf("blob", 3).map((id) => job(id, { body: new Uint8Array(2 * 1024 * 1024) })));
    expect(await queue.clear!(["ready"])).toBe(9);
    expect(tap.perTransaction(isClear)).toEqual([4, 3, 2]);
  });

  test("what comes due meanwhile is cleared all the same, what is delayed anew is not", async () => {
    await fill(1500, 1000);
    const clearing = queue.clear!(["ready", "delayed"]);
    nowMs += 1000;
    await put(other, job("new", { delayMs: 1000 }));
    expect(await clearing).toBe(1500);
    expect(await other.sizes!()).toMatchObject({ ready: 0, delayed: 1 });
  });

  test("the line it draws is in no look, and one row however often", async () => {
    for (let i = 0; i < 5; i += 1) {
      await put(other, "a");
      expect(await queue.clear!(["ready"])).toBe(1);
    }
    expect(await other.sizes!()).toEqual({ ready: 0, delayed: 0, held: 0, dead: 0, paused: false });
    expect(await other.peek!("dead", 10)).toEqual([]);
    const db = new Database(scratch.file);
    expect(db.query("SELECT count(*) AS n, min(queue) AS queue FROM eddy_jobs").get()).toEqual({
      n: 1,
      queue: 0,
    });
    db.close();
  });
});

describe("redrive", () => {
  test("goes in slices, and leaves what died meanwhile, in the place of what went", async () => {
    await bury(2500);
    const redriving = queue.redrive!({ limit: Infinity });
    await replaceAll(isRevival, "dead");
    expect(await redriving).toBe(1000);
    expect(await other.sizes!()).toMatchObject({ ready: 0, dead: 2 });
  });

  test("no slice is of more than 1,000 jobs, the limit holds over all, and each wakes who watches", async () => {
    await bury(2700);
    let wakes = 0;
    const watch = await queue.watch!(
      () => {
        wakes += 1;
      },
      () => {},
    );
    expect(await queue.redrive!({ limit: 2500 })).toBe(2500);
    await watch.close();
    expect(tap.perTransaction(isRevival)).toEqual([1000, 1000, 500]);
    expect(wakes).toBeGreaterThanOrEqual(3);
    expect(await other.sizes!()).toMatchObject({ ready: 2500, dead: 200 });
    expect(ids((await take(other, 2)) as Delivery[])).toEqual(["a1", "a2"]);
  });

  test("nor of many more than 4 MiB", async () => {
    const body = "x".repeat(1024 * 1024);
    await put(other, ...idsOf("big", 6).map((id) => job(id, { body })));
    await settle(other, await take(other, 6), DEAD);
    expect(await queue.redrive!({ ids: idsOf("big", 6), limit: 10 })).toBe(6);
    expect(tap.perTransaction(isRevival)).toEqual([4, 2]);
  });
});
