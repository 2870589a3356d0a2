/** What the adapter relies on a file driver for, asked of the one over `bun:sqlite`. */

import { afterEach, beforeEach, expect, test } from "bun:test";
import { bunSqlite } from "../../adapters/sqlite/bun_driver.ts";
import type { SqlDriver } from "../../adapters/sqlite/mod.ts";
import { Scratch } from "../support/sqlite_scratch.ts";

let scratch: Scratch;
let driver: SqlDriver;

beforeEach(async () => {
  scratch = new Scratch();
  driver = await scratch.database().open();
  driver.exec("CREATE TABLE t (n INTEGER, v ANY); INSERT INTO t VALUES (1, 'one')");
});
afterEach(async () => {
  driver.close();
  await scratch.remove();
});

function rows(of: SqlDriver = driver): number {
  return Number(of.prepare("SELECT count(*) AS n FROM t").get()?.n);
}

test("a transaction that throws is undone, and the next one works", () => {
  const add = driver.prepare("INSERT INTO t VALUES (?, ?)");
  expect(() =>
    driver.transaction(() => {
      add.run(2, "two");
      throw new Error("no");
    }),
  ).toThrow("no");
  expect(rows()).toBe(1);
  expect(
    driver.transaction(() => {
      add.run(2, "two");
      return "done";
    }),
  ).toBe("done");
  expect(rows()).toBe(2);
});

test("a transaction is seen by others when it is over, not before", async () => {
  const other = await scratch.database().open();
  driver.transaction(() => {
    driver.prepare("INSERT INTO t VALUES (?, ?)").run(2, "two");
    expect(rows(other)).toBe(1);
  });
  expect(rows(other)).toBe(2);
  other.close();
});

test("values come back as they were bound", () => {
  const add = driver.prepare("INSERT INTO t VALUES (?, ?) RETURNING v");
  const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
  for (const value of [
    "",
    "\uFEFFtext \u{1F680}",
    0,
    Number.MAX_SAFE_INTEGER,
    null,
    new Uint8Array(),
    bytes,
  ]) {
    expect(add.get(2, value)).toEqual({ v: value });
    expect(add.all(2, value)).toEqual([{ v: value }]);
  }
  expect(driver.prepare("SELECT v FROM t WHERE n = ?").get(99)).toBeUndefined();
});

test("it tells commits of others, not its own", async () => {
  const other = await scratch.database().open();
  const before = driver.otherCommits?.();
  driver.exec("INSERT INTO t VALUES (2, 'own')");
  expect(driver.otherCommits?.()).toBe(before as number);
  other.exec("INSERT INTO t VALUES (3, 'other')");
  const after = driver.otherCommits?.();
  expect(after).not.toBe(before as number);
  expect(driver.otherCommits?.()).toBe(after as number);
  other.close();
});

test("commits reach the disk by default, and only the file is spared when asked for", async () => {
  const asked = async (source: { open(): Promise<SqlDriver> }, pragma: string) => {
    const opened = await source.open();
    const value = opened.prepare(`PRAGMA ${pragma}`).get()?.[pragma];
    opened.close();
    return value;
  };
  const full = bunSqlite({ file: scratch.file });
  expect(await asked(full, "synchronous")).toBe(2);
  expect(await asked(full, "fullfsync")).toBe(1);
  const normal = bunSqlite({ file: scratch.file, synchronous: "normal" });
  expect(await asked(normal, "synchronous")).toBe(1);
  for (const source of [full, normal]) expect(await asked(source, "journal_mode")).toBe("wal");
});

test("it may be closed twice", () => {
  driver.close();
  driver.close();
});
