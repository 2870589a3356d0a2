/** Opening a file: it waits for others by a timer, and the file stays the one that was named. */

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { bunSqlite } from "../../adapters/sqlite/bun_driver.ts";
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import { BrokerError, BrokerRefusedError, defineWorker, drain, queue } from "../../src/mod.ts";
import { ids, put, take } from "../support/conformance_steps.ts";
import { errorOf, Scratch, SETTINGS } from "../support/sqlite_scratch.ts";

let scratch: Scratch;
let blocker: Database;
beforeEach(() => {
  scratch = new Scratch();
  blocker = new Database(scratch.file);
});
afterEach(async () => {
  blocker.close();
  await scratch.remove();
});

/** Lets timers of the process go off a few times: it would be kept from that by whoever waits in SQLite. */
async function whileTimersRun(): Promise<void> {
  for (let i = 0; i < 5; i += 1) await new Promise((resolve) => setTimeout(resolve, 1));
}

describe("while another process has the file", () => {
  for (const [kind, prepare] of [
    ["a new one", () => {}],
    ["one that is in use", () => blocker.run("PRAGMA journal_mode = WAL; CREATE TABLE own (n)")],
    [
      "one that is had by one process alone",
      () => blocker.run("PRAGMA locking_mode = EXCLUSIVE; CREATE TABLE own (n)"),
    ],
  ] as const) {
    test(`opening ${kind} waits by a timer, and goes on once it can be had`, async () => {
      prepare();
      blocker.run("BEGIN EXCLUSIVE");
      const opening = scratch.queue(scratch.database({ busyTimeoutMs: 20_000 }));
      await whileTimersRun();
      blocker.run("ROLLBACK");
      blocker.close();
      const queue = await opening;
      await put(queue, "a");
      expect(ids(await take(queue))).toEqual(["a"]);
    });
  }

  test("opening ends with what is in the way, and promises no further try", async () => {
    blocker.run("BEGIN EXCLUSIVE");
    const error = await errorOf(scratch.queue(scratch.database({ busyTimeoutMs: 30 })));
    expect(error).toBeInstanceOf(BrokerError);
    expect(error).not.toBeInstanceOf(BrokerRefusedError);
    expect(error.message).toBe(
      `Cannot open ${scratch.file}: another process holds the database in a transaction for longer than busyTimeoutMs; let it end, or end it`,
    );
  });

  test("closing the broker ends the wait", async () => {
    blocker.run("BEGIN EXCLUSIVE");
    const broker = scratch.broker(scratch.database({ busyTimeoutMs: 600_000 }));
    const failed = errorOf(broker.queue("work", SETTINGS).open());
    await whileTimersRun();
    await broker.close();
    expect((await failed).message).toBe("Cannot open: the broker is closed; open a new one");
  });

  test("a drain waits no longer than its own time", async () => {
    blocker.run("BEGIN EXCLUSIVE");
    const broker = scratch.broker(scratch.database({ busyTimeoutMs: 600_000 }));
    const worker = defineWorker({ queues: [queue("work").handle(() => {})] });
    const error = await errorOf(drain(worker, { broker, platform: bunPlatform(), budget: { maxMs: 100 } }));
    expect(error).toBeInstanceOf(BrokerError);
    expect(error.message).toContain("did not answer open within");
  });

  test("looks wait by a timer, too, and a watch lasts", async () => {
    blocker.run("PRAGMA journal_mode = WAL; BEGIN EXCLUSIVE");
    let isHeld = false;
    let refused = 0;
    // Readers are in nobody's way but after a crash: here the error is the real one of another statement.
    const unlessHeld = <T>(act: () => T): T => {
      if (!isHeld) return act();
      refused += 1;
      const other = new Database(scratch.file);
      try {
        other.run("BEGIN IMMEDIATE");
      } finally {
        other.close();
      }
      throw new Error("the file is not held");
    };
    const file = join(scratch.folder, "own.db");
    const database = scratch.database({ file, busyTimeoutMs: 20_000 }, (driver) => {
      const { prepare, otherCommits } = driver;
      driver.otherCommits = () => unlessHeld(() => otherCommits?.call(driver) ?? 0);
      driver.prepare = (sql) => {
        const statement = prepare.call(driver, sql);
        const { get } = statement;
        if (sql.includes("AS ready")) {
          statement.get = (...params) => unlessHeld(() => get.call(statement, ...params));
        }
        return statement;
      };
    });
    const queue = await scratch.queue(database);
    const ended: Error[] = [];
    const woken = Promise.withResolvers<void>();
    isHeld = true;
    const watching = queue.watch!(woken.resolve, (error) => ended.push(error));
    const sizes = queue.sizes!();
    await whileTimersRun();
    isHeld = false;
    expect((await sizes).ready).toBe(0);
    const watch = await watching;
    isHeld = true;
    const before = refused;
    while (refused < before + 3) await whileTimersRun();
    isHeld = false;
    await put(await scratch.queue(scratch.database({ file })), "a");
    await woken.promise;
    expect(ended).toEqual([]);
    await watch.close();
  });
});

describe("a relative path", () => {
  const home = process.cwd();
  afterEach(() => process.chdir(home));

  test("means the folder that was current when it was given", async () => {
    process.chdir(scratch.folder);
    const database = bunSqlite({ file: "relative.db", synchronous: "normal" });
    const first = await scratch.queue(database);
    process.chdir("/");
    await put(first, "a");
    // Opened anew, it is the same file.
    const again = await scratch.queue(database);
    expect(ids(await take(again))).toEqual(["a"]);
    expect(database.where).toBe(`${scratch.folder}/relative.db`);
  });
});
