/** Who watches one connection learns what another's commits mean for the next due time, and of nothing else. */

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { BrokerQueue, Watch } from "../../src/broker.ts";
import { ids, job, put, take } from "../support/conformance_steps.ts";
import { Scratch } from "../support/sqlite_scratch.ts";

let scratch: Scratch;
let nowMs: number;
let queue: BrokerQueue;
let other: BrokerQueue;
let wakes: number;
let watch: Watch | undefined;

beforeEach(async () => {
  scratch = new Scratch();
  nowMs = 1_700_000_000_000;
  wakes = 0;
  queue = await scratch.queue(undefined, () => nowMs);
  other = await scratch.queue(undefined, () => nowMs);
});
afterEach(async () => {
  await watch?.close();
  watch = undefined;
  await scratch.remove();
});

async function begin(): Promise<void> {
  watch = await queue.watch!(
    () => {
      wakes += 1;
    },
    () => {},
  );
}

/** Turns enough for the watch to look, several times over. */
async function lookOn(): Promise<void> {
  for (let i = 0; i < 6; i += 1) await new Promise((resolve) => setTimeout(resolve, 5));
}

async function untilWoken(count: number): Promise<void> {
  const deadline = performance.now() + 5000;
  while (wakes < count && performance.now() < deadline)
    await new Promise((resolve) => setTimeout(resolve, 5));
  expect(wakes).toBe(count);
}

const later = (id: string, delayMs: number) => job(id, { delayMs });

test("a job due later than one that is gone wakes", async () => {
  await begin();
  await put(other, later("a", 1000));
  await untilWoken(1);
  nowMs += 1000;
  // By this connection, whose own commits are not looked at.
  expect(ids(await take(queue))).toEqual(["a"]);
  await put(other, later("b", 5000));
  await untilWoken(2);
});

test("a resume elsewhere wakes for a delayed job that was known before: claims told nothing of it meanwhile", async () => {
  await begin();
  await put(other, later("a", 1000));
  await untilWoken(1);
  await other.pause!();
  await lookOn();
  await other.resume!();
  await untilWoken(2);
});

test("what was delayed when the watch began is no news, what is due sooner is", async () => {
  await put(other, later("a", 1000));
  await begin();
  await put(other, later("b", 2000));
  await lookOn();
  expect(wakes).toBe(0);
  await put(other, later("c", 500));
  await untilWoken(1);
});

test("a second watch keeps no news from the first", async () => {
  await begin();
  await put(other, later("a", 1000));
  // Added before the next look.
  const second = await queue.watch!(
    () => {},
    () => {},
  );
  await untilWoken(1);
  await second.close();
  await put(other, later("b", 500));
  await untilWoken(2);
});

test("a watch begun anew knows nothing of the one before", async () => {
  await put(other, later("a", 1000));
  await begin();
  await watch?.close();
  nowMs += 1000;
  await take(queue);
  await put(queue, later("b", 3000));
  await begin();
  await put(other, later("c", 4000));
  await lookOn();
  expect(wakes).toBe(0);
});

test("while a transaction of its own waits for others it is told nothing, and all when that is through", async () => {
  await put(other, job("a"));
  const blocker = new Database(scratch.file);
  await begin();
  blocker.run("BEGIN IMMEDIATE");
  const waiting = queue.renew(["none"]);
  // Another's commit, and not free for a moment.
  blocker.run("UPDATE eddy_queues SET memo = 'changed'");
  blocker.run("COMMIT; BEGIN IMMEDIATE");
  await lookOn();
  expect(wakes).toBe(0);
  blocker.run("COMMIT");
  blocker.close();
  await waiting;
  await untilWoken(1);
});
