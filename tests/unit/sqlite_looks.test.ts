/** Looks at a queue read the bodies that they show, and no others. */

import { afterEach, beforeEach, expect, test } from "bun:test";
import type { BrokerQueue, JobState } from "../../src/broker.ts";
import { ask, openApp, post } from "../http/fixture.ts";
import { claim, DEAD, ids, idsOf, job, put, settle, take } from "../support/conformance_steps.ts";
import { Scratch } from "../support/sqlite_scratch.ts";
import { SqliteTap } from "../support/sqlite_tap.ts";

const BODY = "x".repeat(50_000);
const STATES: readonly JobState[] = ["ready", "delayed", "held", "dead"];

let scratch: Scratch;
let tap: SqliteTap;
let queue: BrokerQueue;

beforeEach(async () => {
  scratch = new Scratch();
  tap = new SqliteTap();
  queue = await scratch.queue(scratch.database({}, tap.listen));
  const jobs = (prefix: string, delayMs = 0) =>
    idsOf(prefix, 5).map((id) => job(id, { delayMs, body: BODY, headers: { a: "b" } }));
  await put(queue, ...jobs("dead"));
  await settle(queue, await take(queue, 5), DEAD);
  await put(queue, ...jobs("held"));
  await take(queue, 5);
  await put(queue, ...jobs("ready"), ...jobs("delayed", 60_000));
  tap.runs.length = 0;
});
afterEach(() => scratch.remove());

/** How many rows came of statements that name the column, since the last time. */
function bodiesRead(): number {
  const rows = tap.runs.filter((run) => /\bbody\b/.test(run.sql)).flatMap((run) => run.rows);
  tap.runs.length = 0;
  return rows.length;
}

test.each(STATES)("a look at %s jobs without bodies reads none", async (state) => {
  const jobs = await queue.peek!(state, 3, false);
  expect(ids(jobs)).toEqual(idsOf(state, 3));
  expect(jobs.every((one) => one.body === "" && one.headers.a === "b")).toBe(true);
  expect(tap.runs.length).toBeGreaterThan(0);
  expect(bodiesRead()).toBe(0);
});

test.each(STATES)("a look at %s jobs reads as many bodies as it shows", async (state) => {
  const jobs = await queue.peek!(state, 3);
  expect(ids(jobs)).toEqual(idsOf(state, 3));
  expect(jobs.every((one) => one.body === BODY)).toBe(true);
  expect(bodiesRead()).toBe(3);
});

test("sizes, and what is due next, read none", async () => {
  expect(await queue.sizes!()).toMatchObject({ ready: 5, delayed: 5, held: 5, dead: 5 });
  expect(bodiesRead()).toBe(0);
  await take(queue, 5);
  tap.runs.length = 0;
  expect((await claim(queue, 5)).nextDueMs).toBeGreaterThan(0);
  expect(bodiesRead()).toBe(0);
});

test("the HTTP API reads bodies only where they are asked for", async () => {
  const app = openApp({ broker: scratch.broker(scratch.database({}, tap.listen)) });
  await post(app, "/v1/queues/notes/jobs", BODY, { "content-type": "text/plain" });
  tap.runs.length = 0;
  const without = await ask(app, "/v1/queues/notes/ready");
  expect(without.json.jobs).toEqual([expect.not.objectContaining({ body: expect.anything() })]);
  expect(bodiesRead()).toBe(0);
  const shown = await ask(app, "/v1/queues/notes/ready?bodies=true");
  expect(shown.json.jobs).toEqual([expect.objectContaining({ body: BODY })]);
  expect(bodiesRead()).toBe(1);
});
