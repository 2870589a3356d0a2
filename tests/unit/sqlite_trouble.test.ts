/** What a person reads when the file cannot serve: real failures of a real SQLite, brought about on purpose. */

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { bunSqlite } from "../../adapters/sqlite/bun_driver.ts";
import { BrokerError, BrokerRefusedError } from "../../src/errors.ts";
import { ACK, claim, ids, idsOf, job, put, settle, take } from "../support/conformance_steps.ts";
import { errorOf, Scratch, SETTINGS } from "../support/sqlite_scratch.ts";

let scratch: Scratch;
beforeEach(() => {
  scratch = new Scratch();
});
afterEach(() => scratch.remove());

const SECRET = "a body that no error may repeat";

describe("opening", () => {
  test("a file that is no database is refused for good", async () => {
    writeFileSync(scratch.file, "Dear diary, this is not a database.\n".repeat(200));
    const error = await errorOf(scratch.queue());
    expect(error).toBeInstanceOf(BrokerRefusedError);
    expect(error.message).toContain("jobs.db: the file is not a SQLite database");
  });

  test("a missing folder is named", async () => {
    const file = join(scratch.folder, "none", "jobs.db");
    const error = await errorOf(scratch.queue(bunSqlite({ file })));
    expect(error).toBeInstanceOf(BrokerError);
    expect(error).not.toBeInstanceOf(BrokerRefusedError);
    expect(error.message).toContain(
      `the folder ${join(scratch.folder, "none")} does not exist; make it first`,
    );
  });

  test("it may be tried again once the folder is there", async () => {
    const folder = join(scratch.folder, "later");
    const queue = scratch.broker(bunSqlite({ file: join(folder, "jobs.db") })).queue("work", SETTINGS);
    await errorOf(queue.open());
    mkdirSync(folder);
    await queue.open();
    await put(queue, "a");
    expect(ids(await take(queue))).toEqual(["a"]);
  });

  test("a folder in the file's place is told", async () => {
    const error = await errorOf(scratch.queue(bunSqlite({ file: scratch.folder })));
    expect(error.message).toContain("it is a folder");
  });

  test("a name that leads nowhere, or is too long, is told as the system tells it", async () => {
    const [one, other] = [join(scratch.folder, "one"), join(scratch.folder, "other")];
    symlinkSync(one, other);
    symlinkSync(other, one);
    for (const [file, code] of [
      [one, "ELOOP"],
      [join(scratch.folder, "x".repeat(300)), "ENAMETOOLONG"],
    ] as const) {
      const error = await errorOf(scratch.queue(bunSqlite({ file })));
      expect(error).toBeInstanceOf(BrokerError);
      expect(error.message).toBe(`Cannot open ${file}: the system answered ${code}; name another file`);
    }
  });

  test("where SQLite's own files cannot be made, the folder is named", async () => {
    // A file that cannot be made, also for a test that runs as root.
    symlinkSync(join(scratch.folder, "none", "wal"), `${scratch.file}-wal`);
    const error = await errorOf(scratch.queue());
    expect(error).toBeInstanceOf(BrokerError);
    expect(error).not.toBeInstanceOf(BrokerRefusedError);
    expect(error.message).toBe(
      `Cannot open ${scratch.file}: the file, or its -wal or -shm beside it, cannot be opened or made; let this process write the folder ${scratch.folder}`,
    );
  });

  test("a layout of a newer version is refused and left alone", async () => {
    await scratch.queue();
    const db = new Database(scratch.file);
    db.run("UPDATE eddy_meta SET value = '2' WHERE key = 'schema'");
    db.run("DROP INDEX eddy_dead");
    const error = await errorOf(scratch.queue());
    expect(error).toBeInstanceOf(BrokerRefusedError);
    expect(error.message).toContain("its layout is of version 2, this Eddy knows version 1");
    expect(db.query("SELECT 1 FROM sqlite_schema WHERE name = 'eddy_dead'").get()).toBeNull();
    db.close();
  });

  test("options that mean nothing are refused at once", () => {
    expect(() => bunSqlite({ file: "" })).toThrow('file is ""');
    expect(() => bunSqlite({ file: ":memory:" })).toThrow("for jobs in memory take the memory broker");
    expect(() => bunSqlite({ file: "x", synchronous: "off" as "full" })).toThrow(
      'it must be "full" or "normal"',
    );
    expect(() => bunSqlite({ file: "x", busyTimeoutMs: -1 })).toThrow("busyTimeoutMs is -1");
  });

  test("a queue that was not opened says so", async () => {
    const queue = scratch.broker().queue("work", SETTINGS);
    expect((await errorOf(claim(queue, 1))).message).toContain("call open() first");
  });
});

describe("at work", () => {
  test("a full disk fails the verb whole, and work goes on once there is room", async () => {
    const held = new Set<{ exec(sql: string): void }>();
    const queue = await scratch.queue(scratch.database({}, (driver) => held.add(driver)));
    const [driver] = held;
    await put(queue, "a");
    driver?.exec("PRAGMA max_page_count = 40");
    const big = idsOf("big", 20).map((id) => job(id, { body: SECRET.repeat(2000) }));
    const error = await errorOf(put(queue, ...big));
    expect(error).toBeInstanceOf(BrokerError);
    expect(error).not.toBeInstanceOf(BrokerRefusedError);
    expect(error.message).toBe(
      `Cannot enqueue on ${scratch.file}: the disk is full or the database may not grow; make room`,
    );
    expect(await queue.sizes!()).toMatchObject({ ready: 1 });
    driver?.exec("PRAGMA max_page_count = 4000");
    await put(queue, ...big);
    expect(await take(queue)).toHaveLength(21);
  });

  test("a file that may only be read is refused, and reading goes on", async () => {
    await put(await scratch.queue(), "a");
    let readOnly: { exec(sql: string): void } | undefined;
    const queue = await scratch.queue(
      scratch.database({}, (driver) => {
        readOnly = driver;
      }),
    );
    readOnly?.exec("PRAGMA query_only = 1");
    const error = await errorOf(put(queue, "b"));
    expect(error).toBeInstanceOf(BrokerRefusedError);
    expect(error.message).toContain("the file may only be read");
    expect(await queue.sizes!()).toMatchObject({ ready: 1 });
  });

  test("a damaged file is refused, and no body is in the message", async () => {
    const queue = await scratch.queue();
    for (let i = 0; i < 40; i += 1)
      await put(queue, ...idsOf(`${i}.`, 50).map((id) => job(id, { body: SECRET })));
    const db = new Database(scratch.file);
    db.query("PRAGMA wal_checkpoint(TRUNCATE)").get();
    db.close();
    const pages = Math.floor(statSync(scratch.file).size / 4096);
    const damaged = openSync(scratch.file, "r+");
    for (let page = 12; page < pages; page += 1)
      writeSync(damaged, Buffer.alloc(4096, 0x5a), 0, 4096, page * 4096);
    closeSync(damaged);
    const again = scratch.broker().queue("work", SETTINGS);
    const error = await errorOf(
      (async () => {
        await again.open();
        for (;;) {
          const deliveries = await take(again, 100);
          if (deliveries.length === 0) return;
          await settle(again, deliveries, ACK);
        }
      })(),
    );
    expect(error).toBeInstanceOf(BrokerRefusedError);
    expect(error.message).toContain("the file is damaged; stop every worker and restore it");
    expect(error.message).not.toContain(SECRET);
  });

  test("a writer that holds the file too long makes a passing error", async () => {
    const queue = await scratch.queue(scratch.database({ busyTimeoutMs: 30 }));
    await put(queue, "a");
    const blocker = new Database(scratch.file);
    blocker.run("BEGIN IMMEDIATE");
    const error = await errorOf(claim(queue, 1));
    expect(error).toBeInstanceOf(BrokerError);
    expect(error).not.toBeInstanceOf(BrokerRefusedError);
    expect(error.message).toContain("another process holds the database");
    blocker.run("ROLLBACK");
    blocker.close();
    expect(ids(await take(queue))).toEqual(["a"]);
  });

  test("a file removed under a running worker is refused at once: what went into it would be lost", async () => {
    const queue = await scratch.queue();
    await put(queue, "a");
    renameSync(scratch.file, `${scratch.file}.gone`);
    const error = await errorOf(put(queue, "b"));
    expect(error).toBeInstanceOf(BrokerRefusedError);
    expect(error.message).toContain("the file was removed or replaced while it was open");
    renameSync(`${scratch.file}.gone`, scratch.file);
    expect(ids(await take(queue))).toContain("a");
  });

  test("a file replaced by another is refused at once", async () => {
    const queue = await scratch.queue();
    await put(queue, "a");
    writeFileSync(`${scratch.file}.new`, readFileSync(scratch.file));
    renameSync(`${scratch.file}.new`, scratch.file);
    expect((await errorOf(put(queue, "b"))).message).toContain("the file was removed or replaced");
  });

  for (const beside of ["-wal", "-shm"]) {
    test(`the ${beside} file removed under a running worker is refused at once`, async () => {
      const link = join(scratch.folder, "link.db");
      for (const [file, name] of [
        [scratch.file, "a"],
        [link, "b"],
      ] as const) {
        const queue = await scratch.queue(scratch.database({ file }));
        if (file === scratch.file) symlinkSync(file, link);
        await put(queue, name);
        const kept = `${scratch.file}${beside}`;
        renameSync(kept, `${kept}.gone`);
        const error = await errorOf(put(queue, `${name}2`));
        expect(error).toBeInstanceOf(BrokerRefusedError);
        expect(error.message).toContain(`its ${beside} file was removed or replaced while it was open`);
        renameSync(`${kept}.gone`, kept);
        await put(queue, `${name}3`);
      }
    });
  }

  test("a watch ends with its reason when the file cannot be read any more", async () => {
    const queue = await scratch.queue();
    const ended = Promise.withResolvers<Error>();
    await queue.watch!(() => {}, ended.resolve);
    rmSync(scratch.file);
    const error = await ended.promise;
    expect(error).toBeInstanceOf(BrokerRefusedError);
    expect(error.message).toContain("Cannot watch");
    writeFileSync(scratch.file, "");
  });
});
