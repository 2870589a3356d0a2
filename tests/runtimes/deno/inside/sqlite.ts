/**
 * `node:sqlite` of Deno in the hands of the SQLite adapter: what a person reads when the file cannot serve, real failures brought
 * about on purpose; and what the adapter relies on.
 *
 * @module
 */
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type SqlDriver, SqliteBroker, type SqlSource } from "../../../../adapters/sqlite/mod.ts";
import { nodeSqlite } from "../../../../adapters/sqlite/node_driver.ts";
import type { BrokerQueue, QueueSettings } from "../../../../src/broker.ts";
import { rejects, same, that } from "../../../support/conformance_assert.ts";
import { ACK, claim, ids, idsOf, job, put, settle, take } from "../../../support/conformance_steps.ts";

const SETTINGS: QueueSettings = { leaseMs: 30_000, requestTimeoutMs: 5000, dedupeWindowMs: 60_000 };
const SECRET = "a body that no error may repeat";

/** A folder that is thrown away, and the brokers opened in it. */
class Scratch {
  readonly folder = mkdtempSync(join(tmpdir(), "eddy-deno-sqlite-"));
  readonly file = join(this.folder, "jobs.db");
  readonly #brokers: SqliteBroker[] = [];
  /** The newest connection. */
  driver: SqlDriver | undefined;

  source(options: Partial<Parameters<typeof nodeSqlite>[0]> = {}): SqlSource {
    const source = nodeSqlite({ file: this.file, synchronous: "normal", ...options });
    return {
      ...source,
      open: async () => {
        this.driver = await source.open();
        return this.driver;
      },
    };
  }

  unopened(database: SqlSource = this.source()): BrokerQueue {
    const broker = new SqliteBroker({ database });
    this.#brokers.push(broker);
    return broker.queue("work", SETTINGS);
  }

  async queue(database?: SqlSource): Promise<BrokerQueue> {
    const queue = this.unopened(database);
    await queue.open();
    return queue;
  }

  async remove(): Promise<void> {
    for (const broker of this.#brokers) await broker.close();
    rmSync(this.folder, { recursive: true });
  }
}

function scratchTest(name: string, run: (scratch: Scratch) => Promise<void>): void {
  Deno.test(`node:sqlite > ${name}`, async () => {
    const scratch = new Scratch();
    try {
      await run(scratch);
    } finally {
      await scratch.remove();
    }
  });
}

scratchTest("a file that is no database is refused for good", async (scratch) => {
  writeFileSync(scratch.file, "Dear diary, this is not a database.\n".repeat(200));
  await rejects(
    scratch.queue(),
    "BrokerRefusedError",
    ["jobs.db: the file is not a SQLite database"],
    "opening",
  );
});

scratchTest("a missing folder is named, and it may be tried again once it is there", async (scratch) => {
  const folder = join(scratch.folder, "none");
  const queue = scratch.unopened(scratch.source({ file: join(folder, "jobs.db") }));
  await rejects(
    queue.open(),
    "BrokerError",
    [`the folder ${folder} does not exist; make it first`],
    "opening",
  );
  mkdirSync(folder);
  await queue.open();
  await put(queue, "a");
  same(ids(await take(queue)), ["a"], "jobs");
});

scratchTest("a folder in the file's place is told", async (scratch) => {
  await rejects(
    scratch.queue(scratch.source({ file: scratch.folder })),
    "BrokerError",
    ["it is a folder"],
    "opening",
  );
});

scratchTest("where SQLite's own files cannot be made, the folder is named", async (scratch) => {
  const db = new DatabaseSync(scratch.file);
  db.exec("CREATE TABLE t (n INTEGER)");
  db.close();
  mkdirSync(`${scratch.file}-wal`);
  await rejects(
    scratch.queue(),
    "BrokerError",
    [`let this process write the folder ${scratch.folder}`],
    "opening",
  );
});

scratchTest("a full disk fails the verb whole, and work goes on once there is room", async (scratch) => {
  const queue = await scratch.queue();
  await put(queue, "a");
  scratch.driver?.exec("PRAGMA max_page_count = 40");
  const big = idsOf("big", 20).map((id) => job(id, { body: SECRET.repeat(2000) }));
  const error = await put(queue, ...big).then(
    () => undefined,
    (caught: Error) => caught,
  );
  same(
    [error?.name, error?.message],
    [
      "BrokerError",
      `Cannot enqueue on ${scratch.file}: the disk is full or the database may not grow; make room`,
    ],
    "the error",
  );
  same((await queue.sizes!()).ready, 1, "ready jobs");
  scratch.driver?.exec("PRAGMA max_page_count = 4000");
  await put(queue, ...big);
  same((await take(queue)).length, 21, "jobs");
});

scratchTest("a file that may only be read is refused, and reading goes on", async (scratch) => {
  await put(await scratch.queue(), "a");
  const queue = await scratch.queue();
  scratch.driver?.exec("PRAGMA query_only = 1");
  await rejects(put(queue, "b"), "BrokerRefusedError", ["the file may only be read"], "enqueuing");
  same((await queue.sizes!()).ready, 1, "ready jobs");
});

scratchTest("a damaged file is refused, and no body is in the message", async (scratch) => {
  const queue = await scratch.queue();
  for (let i = 0; i < 40; i += 1) {
    await put(queue, ...idsOf(`${i}.`, 50).map((id) => job(id, { body: SECRET })));
  }
  const db = new DatabaseSync(scratch.file);
  db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get();
  db.close();
  const pages = Math.floor(statSync(scratch.file).size / 4096);
  const damaged = openSync(scratch.file, "r+");
  const junk = new Uint8Array(4096).fill(0x5a);
  for (let page = 12; page < pages; page += 1) writeSync(damaged, junk, 0, 4096, page * 4096);
  closeSync(damaged);
  const again = scratch.unopened();
  const work = (async () => {
    await again.open();
    for (;;) {
      const deliveries = await take(again, 100);
      if (deliveries.length === 0) return;
      await settle(again, deliveries, ACK);
    }
  })();
  const error = await work.then(
    () => undefined,
    (caught: Error) => caught,
  );
  same(error?.name, "BrokerRefusedError", "the error");
  that(
    error?.message.includes("the file is damaged; stop every worker and restore it") === true,
    `its text is ${error?.message}`,
  );
  that(!error.message.includes(SECRET), "its text has a body");
});

scratchTest("a writer that holds the file too long makes a passing error", async (scratch) => {
  const queue = await scratch.queue(scratch.source({ busyTimeoutMs: 30 }));
  await put(queue, "a");
  const blocker = new DatabaseSync(scratch.file);
  blocker.exec("BEGIN IMMEDIATE");
  await rejects(claim(queue, 1), "BrokerError", ["another process holds the database"], "claiming");
  blocker.exec("ROLLBACK");
  blocker.close();
  same(ids(await take(queue)), ["a"], "jobs");
});

scratchTest(
  "a file removed under a running worker is refused: what went into it would be lost",
  async (scratch) => {
    const queue = await scratch.queue();
    await put(queue, "a");
    renameSync(scratch.file, `${scratch.file}.gone`);
    await rejects(put(queue, "b"), "BrokerRefusedError", ["the file was removed or replaced"], "enqueuing");
  },
);

scratchTest("another program's commits are seen at once, and wake", async (scratch) => {
  const queue = await scratch.queue();
  const woken = Promise.withResolvers<void>();
  const watch = await queue.watch!(woken.resolve, () => {});
  const other = new DatabaseSync(scratch.file);
  other
    .prepare(
      "INSERT INTO eddy_jobs (queue, id, body) VALUES ((SELECT n FROM eddy_queues WHERE name = 'work'), ?, ?)",
    )
    .run("from-elsewhere", "{}");
  other.close();
  // A watch keeps no process alive by itself.
  const alive = setInterval(() => {}, 1000);
  await woken.promise;
  clearInterval(alive);
  await watch.close();
  same(ids(await take(queue)), ["from-elsewhere"], "jobs");
});

scratchTest(
  "integers, texts and blobs come back as they went, a transaction that throws leaves nothing",
  async (scratch) => {
    const driver = await scratch.source().open();
    driver.exec("CREATE TABLE t (n INTEGER PRIMARY KEY, v ANY) STRICT");
    const add = driver.prepare("INSERT INTO t (v) VALUES (?) RETURNING v");
    for (const value of [
      0,
      1_700_000_000_000,
      Number.MAX_SAFE_INTEGER,
      "",
      "é😀",
      null,
      new Uint8Array(),
      new Uint8Array([0, 255]),
    ]) {
      same(add.get(value)?.v, value, `what ${String(value)} became`);
    }
    let threw = false;
    try {
      driver.transaction(() => {
        add.run("never");
        throw new Error("on purpose");
      });
    } catch {
      threw = true;
    }
    that(threw, "the error was swallowed");
    same(driver.prepare("SELECT count(*) AS n FROM t").get()?.n, 8, "rows");
    same(driver.prepare("SELECT v FROM t WHERE n = 99").get(), undefined, "a row that is not there");
    driver.close();
    driver.close();
  },
);
