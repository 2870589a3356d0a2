/** An object that only keeps jobs, worked off from outside by a Worker's crons. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { resolve } from "node:path";
import type { DrainReport, EddyEvent } from "../../../src/mod.ts";
import { Workerd } from "../../support/workerd.ts";

interface Look {
  /** `id:size:attempt`. */
  readonly ran: string[];
  readonly reports: DrainReport[];
  readonly events: EddyEvent[];
}

let workerd: Workerd;
beforeAll(async () => {
  workerd = await Workerd.start({
    entry: resolve(import.meta.dir, "outside_worker.ts"),
    objects: { EDDY_QUEUE: "EddyQueue" },
    rules: { requests: 50, connections: 6, frozenClock: true },
  });
}, 60_000);
afterAll(async () => {
  await workerd?.stop();
});

async function drained(size: number, count: number, mostRuns: number): Promise<Look> {
  const ids = await workerd.json<string[]>(`/test/enqueue?size=${size}&count=${count}`);
  expect((await workerd.json<Look>("/test/look")).ran).toEqual([]);
  const all: Look = { ran: [], reports: [], events: [] };
  do {
    expect(all.reports.length).toBeLessThan(mostRuns);
    expect(await workerd.scheduled()).toBe("ok");
    const { ran, reports, events } = await workerd.json<Look>("/test/look");
    all.ran.push(...ran);
    all.reports.push(...reports);
    all.events.push(...events);
  } while (all.reports.at(-1)!.stopped !== "empty");
  expect(all.ran.sort()).toEqual(ids.map((id) => `${id}:${size}:1`).sort());
  return all;
}

test("nothing runs by itself; a cron works it off", async () => {
  const { reports } = await drained(10, 300, 2);
  console.log(
    `object from outside: 300 jobs in ${reports.length} run(s) of ${reports.map((one) => one.requests).join(", ")} calls`,
  );
  expect(reports.at(-1)).toMatchObject({ left: 0 });
});

test("large bodies come in answers of a size that can be carried", async () => {
  const { events } = await drained(1_000_000, 40, 5);
  const got = events.flatMap((event) => (event.type === "claimed" ? [event.got] : []));
  // Thirty-two were asked for, and eight are what an answer holds.
  expect(Math.max(...got)).toBe(8);
}, 60_000);
