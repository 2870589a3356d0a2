/** What a full disk leaves possible, and what is said of it. */

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import type { SqlDriver } from "../../adapters/sqlite/mod.ts";
import { brokerError } from "../../adapters/sqlite/trouble.ts";
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import { BrokerError, EnqueueError, Producer, queue } from "../../src/mod.ts";
import { ids, job, put, take } from "../support/conformance_steps.ts";
import { errorOf, Scratch } from "../support/sqlite_scratch.ts";

const CHILD = join(import.meta.dir, "../support/sqlite_full_disk.ts");
const SECRET = "a body that no error may repeat";

let scratch: Scratch;
let driver: SqlDriver | undefined;
beforeEach(() => {
  scratch = new Scratch();
});
afterEach(() => scratch.remove());

const database = (busyTimeoutMs = 2000) =>
  scratch.database({ busyTimeoutMs }, (opened) => {
    driver = opened;
  });

/** Lets the database grow no more. */
function limitPages(): number {
  const { page_count } = driver?.prepare("PRAGMA page_count").get() ?? {};
  driver?.exec(`PRAGMA max_page_count = ${page_count}`);
  return Number(page_count);
}

test("a job that found no room is known not to be in the queue, as is one that a busy file kept out", async () => {
  const broker = scratch.broker(database(30));
  const producer = new Producer({ broker, platform: bunPlatform() });
  const work = queue<string>("work");
  await producer.enqueue(work, "x");
  limitPages();
  const full = await errorOf(producer.enqueue(work, SECRET.repeat(20_000)));
  expect(full).toBeInstanceOf(EnqueueError);
  expect(full).toMatchObject({ accepted: 0, uncertain: 0 });
  expect(full.message).toBe(
    `Cannot enqueue to work: Cannot enqueue on ${scratch.file}: the disk is full or the database may not grow; make room (0 of 1 jobs were accepted; no other one was)`,
  );
  const blocker = new Database(scratch.file);
  blocker.run("BEGIN IMMEDIATE");
  expect(await errorOf(producer.enqueue(work, "y"))).toMatchObject({ accepted: 0, uncertain: 0 });
  blocker.run("ROLLBACK");
  blocker.close();
  await producer.enqueue(work, "z");
  expect(await (await scratch.queue()).sizes?.()).toMatchObject({ ready: 2 });
});

test("where the database may not grow it can be cleared, and takes jobs again", async () => {
  const queue = await scratch.queue(database());
  await put(queue, "first");
  const pages = limitPages();
  // As another program's: to the last row that fits, so that there is no room for the line that clearing draws, either.
  const program = new Database(scratch.file);
  program.run(`PRAGMA max_page_count = ${pages}`);
  const add = program.prepare("INSERT INTO eddy_jobs (queue, id, body) VALUES (1, 'own', '')");
  let added = 0;
  try {
    for (;;) {
      add.run();
      added += 1;
    }
  } catch (error) {
    expect(error).toMatchObject({ code: "SQLITE_FULL" });
  }
  expect(await queue.clear?.(["ready"])).toBe(added + 1);
  await put(queue, "again");
  expect(ids(await take(queue))).toEqual(["again"]);
  program.close();
});

test("where even removing finds no room, it is said what to do, and not that nothing was done", async () => {
  const queue = await scratch.queue(database());
  limitPages();
  const full = await errorOf(put(queue, job("a", { body: SECRET.repeat(20_000) })));
  expect(full).toMatchObject({ unchanged: true });
  const error = brokerError("clear", database(), full.cause);
  expect(error).toBeInstanceOf(BrokerError);
  expect(error).toMatchObject({ unchanged: false });
  expect(error.message).toBe(
    `Cannot clear on ${scratch.file}: the disk is full, and removing jobs takes a little room, too; make as much by other means as the -wal file beside it is large, and clear again`,
  );
});

/** Mounts a small file system that only the command sees; where the machine does not allow it, the command runs in a plain folder. */
function onSmallDisk(folder: string, command: readonly string[]): string[] {
  const mount = `mount -t tmpfs -o size=8m tmpfs '${folder}'`;
  const may = Bun.which("unshare") !== null && Bun.spawnSync(["unshare", "-rm", "sh", "-c", mount]).success;
  if (may) return ["unshare", "-rm", "sh", "-c", `${mount} && exec "$@"`, "sh", ...command];
  console.warn("This machine lets no small file system be mounted: the disk is not full in this test");
  return [...command];
}

test("on a disk filled by others there is room still beside the database: jobs are cleared, and taken in", async () => {
  const child = Bun.spawn(onSmallDisk(scratch.folder, [process.execPath, CHILD, scratch.folder]), {
    stdout: "pipe",
  });
  const said = JSON.parse(await new Response(child.stdout).text());
  expect(said.freeBytes ?? 0).toBe(0);
  expect(said).toMatchObject({ cleared: 2010, ready: 100 });
}, 60_000);
