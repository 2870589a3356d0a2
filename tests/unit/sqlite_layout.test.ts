/** The tables themselves: what others may write into them, what is kept and forgotten, and which index serves what. */

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { prepareSchema } from "../../adapters/sqlite/schema.ts";
import { prepareStatements } from "../../adapters/sqlite/statements.ts";
import type { BrokerQueue, Delivery } from "../../src/broker.ts";
import {
  ACK,
  bytes,
  claim,
  DEAD,
  drain,
  ids,
  idsOf,
  job,
  put,
  settle,
  take,
} from "../support/conformance_steps.ts";
import { Scratch } from "../support/sqlite_scratch.ts";

let scratch: Scratch;
let nowMs: number;
let queue: BrokerQueue;
let db: Database;

beforeEach(async () => {
  scratch = new Scratch();
  nowMs = 1_700_000_000_000;
  queue = await scratch.queue(undefined, () => nowMs);
  db = new Database(scratch.file);
});
afterEach(async () => {
  db.close();
  await scratch.remove();
});

function count(table: string): number {
  return (db.query(`SELECT count(*) AS n FROM ${table}`).get() as { n: number }).n;
}

/** The SQL that the module's documentation shows to other programs. */
function documented(): string {
  const source = readFileSync(join(import.meta.dir, "../../adapters/sqlite/mod.ts"), "utf8");
  const block = /```sql\n([\s\S]*?)```/.exec(source)?.[1] ?? "";
  return block.replaceAll(/^ \* ?/gm, "");
}

describe("jobs put in by another program", () => {
  test("the documented statements make a job like any other", async () => {
    const emails = scratch
      .broker(undefined, () => Date.now())
      .queue("emails", {
        leaseMs: 30_000,
        requestTimeoutMs: 5000,
        dedupeWindowMs: 60_000,
      });
    await emails.open();
    const before = Date.now();
    db.run(documented());
    const [delivery] = await take(emails);
    expect(delivery).toMatchObject({
      id: "welcome-42",
      body: '{"to":"ada@example.org"}',
      attempt: 1,
      suspect: false,
      headers: {},
      priority: "normal",
    });
    expect(delivery?.broken).toBeUndefined();
    expect(delivery?.enqueuedAt).toBeGreaterThanOrEqual(before - 1);
    expect(delivery?.enqueuedAt).toBeLessThanOrEqual(Date.now());
    expect(await settle(emails, [delivery as Delivery], ACK)).toEqual(["done"]);
  });

  test("they wake a watcher", async () => {
    const woken = Promise.withResolvers<void>();
    const watch = await queue.watch!(woken.resolve, woken.reject);
    db.run("INSERT INTO eddy_jobs (queue, id, body) VALUES (1, 'a', x'00ff')");
    await woken.promise;
    expect(bytes((await take(queue))[0]?.body ?? "")).toEqual(Uint8Array.of(0, 255));
    await watch.close();
  });

  test("level, headers and a due time may be given", async () => {
    const add = db.prepare(
      "INSERT INTO eddy_jobs (queue, id, body, level, headers, state, due_at) VALUES (1, ?, '', ?, ?, ?, ?)",
    );
    add.run("later", 1, "", "delayed", nowMs + 500);
    add.run("low", 2, '{"a":"b"}', "ready", null);
    add.run("high", 0, "", "ready", null);
    const deliveries = await take(queue);
    expect(ids(deliveries)).toEqual(["high", "low"]);
    expect(deliveries[1]?.headers).toEqual({ a: "b" });
    nowMs += 500;
    expect(ids(await take(queue))).toEqual(["later"]);
  });

  test("a job that makes no sense is refused by the tables", () => {
    const refused = [
      "(queue, id, body) VALUES (1, 'a', 12)",
      "(queue, id, body) VALUES (1, 'a', NULL)",
      "(queue, id, body) VALUES (NULL, 'a', '')",
      "(queue, id, body, level) VALUES (1, 'a', '', 3)",
      "(queue, id, body, state) VALUES (1, 'a', '', 'waiting')",
      "(queue, id, body, state) VALUES (1, 'a', '', 'delayed')",
    ];
    for (const values of refused)
      expect(() => db.run(`INSERT INTO eddy_jobs ${values}`)).toThrow("constraint failed");
    expect(count("eddy_jobs")).toBe(0);
  });

  test("one that cannot be read comes as broken, with its body, and keeps no other back", async () => {
    const add = db.prepare("INSERT INTO eddy_jobs (queue, id, body, headers) VALUES (1, ?, 'kept', ?)");
    for (const headers of ['{"a":', "[]", "null", '{"a":1}', "text"]) add.run("a", headers);
    add.run("not an id", "");
    add.run("sound", '{"a":"b"}');
    const deliveries = await take(queue);
    expect(deliveries.map((one) => one.broken)).toEqual([
      ...Array.from({ length: 5 }, () => "its stored headers are not a JSON object of texts"),
      "its stored id is not 1 to 200 printable ASCII characters without space and |",
      undefined,
    ]);
    expect(deliveries.every((one) => one.body === "kept")).toBe(true);
    expect(await settle(queue, deliveries, DEAD)).toEqual(deliveries.map(() => "done"));
    expect(await queue.peek!("dead", 10)).toHaveLength(7);
  });
});

describe("what is kept", () => {
  test("everything is there after all connections were closed", async () => {
    await put(
      queue,
      "ready",
      "dead",
      "held",
      job("delayed", { delayMs: 5000 }),
      job("once", { dedupe: true }),
    );
    const [ready, dead, held] = (await take(queue, 3)) as [Delivery, Delivery, Delivery];
    await queue.settle([
      { delivery: ready, verdict: { kind: "release" } },
      { delivery: dead, verdict: DEAD },
    ]);
    await queue.exchange!({ settle: [], renew: [], remember: "memo" });
    db.close();
    await scratch.broker().close();
    const again = await scratch.queue(undefined, () => nowMs);
    db = new Database(scratch.file);
    expect(await again.sizes!()).toEqual({ ready: 2, delayed: 1, held: 1, dead: 1, paused: false });
    expect((await put(again, job("once", { dedupe: true })))[0]?.duplicate).toBe(true);
    expect(await settle(again, [held], ACK)).toEqual(["done"]);
    const reply = await again.claim({ leaseId: "l", max: 1, waitMs: 0, recall: true });
    expect(reply.memo).toBe("memo");
  });

  test("an ended lease is forgotten after a minute, a few with each claim", async () => {
    await put(queue, ...idsOf("a", 300));
    for (let i = 0; i < 100; i += 1) await settle(queue, await take(queue, 1), ACK);
    expect(count("eddy_leases")).toBe(100);
    nowMs += 60_000;
    for (let i = 0; i < 14; i += 1) await settle(queue, await take(queue, 1), ACK);
    expect(count("eddy_leases")).toBe(14);
  });

  test("ids and requests are forgotten after the window, a few with each enqueue", async () => {
    for (let i = 0; i < 50; i += 1) await put(queue, job(`a${i}`, { dedupe: true }));
    expect(count("eddy_seen")).toBe(100);
    nowMs += 60_000;
    for (let i = 0; i < 12; i += 1) await put(queue, "b");
    expect(count("eddy_seen")).toBe(12);
  });

  test("an idle claim writes nothing", async () => {
    await put(queue, job("later", { delayMs: 5000 }));
    const version = db.prepare("PRAGMA data_version");
    const before = version.get();
    for (let i = 0; i < 20; i += 1) await claim(queue, 16);
    await queue.sizes!();
    await queue.peek!("delayed", 10);
    expect(version.get()).toEqual(before);
  });

  test("fractions of a millisecond round to the later side", async () => {
    await put(queue, job("a", { delayMs: 10.2 }), job("b", { delayMs: Number.MAX_SAFE_INTEGER }));
    nowMs += 10.7;
    expect(await take(queue)).toEqual([]);
    nowMs += 0.5;
    const [a] = (await take(queue)) as [Delivery];
    await settle(queue, [a], { kind: "retry", delayMs: 0.1 });
    expect(ids(await take(queue))).toEqual([]);
    nowMs += 1;
    expect(ids(await take(queue))).toEqual(["a"]);
  });
});

test("a text is TEXT, but where a NUL or half a character would be bent by some reader", async () => {
  const texts = ["", "plain \u{1F680}", "nul \0 within", "half \uD83D of a pair"];
  await put(queue, ...texts.map((body, i) => job(`a${i}`, { body })), job("b", { body: Uint8Array.of(65) }));
  const rows = db
    .query("SELECT typeof(body) AS type, length(CAST(body AS BLOB)) AS size FROM eddy_jobs")
    .all();
  expect(rows).toEqual([
    { type: "text", size: 0 },
    { type: "text", size: 10 },
    { type: "blob", size: 12 },
    { type: "blob", size: 18 },
    { type: "blob", size: 1 },
  ]);
});

test("commits that leave nothing to claim wake nobody", async () => {
  const other = await scratch.queue(undefined, () => nowMs);
  let wakes = 0;
  const watch = await queue.watch!(
    () => {
      wakes += 1;
    },
    () => {},
  );
  await other.pause!();
  await put(other, "a");
  // Time enough for the watch to look, several times over.
  const lookOn = async () => {
    for (let i = 0; i < 6; i += 1) await new Promise((resolve) => setTimeout(resolve, 5));
  };
  await lookOn();
  expect(wakes).toBe(0);
  await other.clear!(["ready"]);
  await other.resume!();
  for (let i = 0; i < 3; i += 1) {
    await put(other, job("later", { delayMs: 5000 }));
    await lookOn();
  }
  // Once for the first, which tells when a job is due; the others are not due sooner.
  expect(wakes).toBe(1);
  await watch.close();
});

test("a look at more jobs than a call can have arguments shows them all", async () => {
  const many = 700_000;
  db.query(
    `WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < ?)
      INSERT INTO eddy_jobs (queue, id, body) SELECT 1, 'a' || n, '' FROM counted`,
  ).run(many);
  expect((await queue.peek!("ready", 1_000_000)).length).toBe(many);
}, 30_000);

describe("what a claim costs", () => {
  test("every statement of a claim and a settlement goes by an index or by rows, whatever the statistics", async () => {
    // The worst statistics there can be: of a moment when every table had a single row.
    await put(queue, "a");
    await claim(queue, 1);
    db.run("ANALYZE");
    const prepared: Record<string, string> = {};
    let last = "";
    const statements = prepareStatements({
      maxValueBytes: 1,
      exec: () => {},
      prepare(sql) {
        last = sql;
        return { run: () => {}, get: () => undefined, all: () => [{ sql }] };
      },
      transaction: (fn) => fn(),
      close: () => {},
    });
    expect(last).not.toBe("");
    for (const [name, statement] of Object.entries(statements)) {
      prepared[name] = String(statement.all()[0]?.sql);
    }
    for (const [name, sql] of Object.entries(prepared)) {
      const plan = db.query(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[];
      const scans = plan
        .map((row) => row.detail)
        // Of the crowd only those are there who waited within the last second.
        .filter((detail) => /^SCAN (?!json_each|CONSTANT|eddy_crowd)/.test(detail));
      expect({ name, scans }).toEqual({ name, scans: [] });
    }
  });

  test("a claim takes back a bounded number of jobs, whole leases at a time, and all come in the end", async () => {
    await put(queue, ...idsOf("a", 900));
    await put(queue, ...idsOf("b", 900));
    for (let i = 0; i < 3; i += 1) await take(queue, 600);
    nowMs += 30_000;
    expect(ids(await take(queue, 1))).toEqual(["a1"]);
    expect(db.query("SELECT count(*) AS n FROM eddy_leases WHERE ended = 0").get()).toEqual({ n: 2 });
    expect(await queue.sizes!()).toMatchObject({ ready: 1199, held: 601 });
    expect(await drain(queue)).toHaveLength(1799);
  });

  test("all jobs of a large backlog come, the moves of each claim bounded", async () => {
    for (let i = 0; i < 3; i += 1)
      await put(queue, ...idsOf(`d${i}.`, 1000).map((id) => job(id, { delayMs: 10 })));
    nowMs += 10;
    await claim(queue, 1);
    expect(
      (db.query("SELECT count(*) AS n FROM eddy_jobs WHERE state = 'delayed'").get() as { n: number }).n,
    ).toBe(2000);
    expect(await queue.sizes!()).toMatchObject({ ready: 2999, delayed: 0, held: 1 });
    expect(await drain(queue)).toHaveLength(2999);
  });
});

test("the adapter loads where there is no bun:sqlite: nothing it imports names a runtime", () => {
  const seen = new Set<string>();
  const open = [join(import.meta.dir, "../../adapters/sqlite/mod.ts")];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    for (const [, from = ""] of readFileSync(file, "utf8").matchAll(
      /^(?:import|export|\}) .*?from "([^"]+)";$/gm,
    )) {
      expect({ file, from }).toEqual({ file, from: expect.stringMatching(/^\.\.?\//) });
      open.push(join(dirname(file), from));
    }
  }
  expect(seen.size).toBeGreaterThan(10);
  expect([...seen].some((file) => file.endsWith("bun_driver.ts"))).toBe(false);
});

test("opening prepares the tables in one transaction, and again changes nothing", async () => {
  const driver = await scratch.database().open();
  const version = db.prepare("PRAGMA schema_version");
  const before = version.get();
  prepareSchema(driver);
  expect(version.get()).toEqual(before);
  driver.close();
  driver.close();
});
