/**
 * The driver over a Durable Object's own SQLite storage (`ctx.storage`).
 *
 * The object is the one process on its database, and every call is synchronous, so no two verbs ever overlap. What a verb wrote is
 * confirmed before anything leaves the object (its output gate), so an answer never runs ahead of its data.
 *
 * @module
 */

import type { SqlDriver, SqlRow, SqlSource, SqlStatement, SqlTrouble, SqlValue } from "./driver.ts";

/** The part of `ctx.storage` that is used. The object's class must be one of `new_sqlite_classes`. */
export interface ObjectStorage {
  readonly sql: {
    exec(query: string, ...bindings: SqlValue[]): { toArray(): Record<string, unknown>[] };
  };
  transactionSync<T>(fn: () => T): T;
}

/** A row may have 2 MB as a whole: the rest is for a job's headers, id and error. */
const MAX_VALUE_BYTES = 1_900_000;

/** How many transactions each storage has seen, over all drivers on it. */
const commits = new WeakMap<ObjectStorage, number>();

/** The database of a Durable Object. Making and opening it does no I/O. */
export function durableObjectSqlite(storage: ObjectStorage): SqlSource {
  return {
    where: "the Durable Object's storage",
    open: async () => objectDriver(storage),
    trouble: troubleOf,
  };
}

/** The driver itself, for who needs statements of their own beside a broker's. */
export function objectDriver(storage: ObjectStorage): SqlDriver {
  return new ObjectDriver(storage);
}

class ObjectDriver implements SqlDriver {
  readonly maxValueBytes = MAX_VALUE_BYTES;
  readonly #storage: ObjectStorage;

  constructor(storage: ObjectStorage) {
    this.#storage = storage;
  }

  exec(sql: string): void {
    this.#storage.sql.exec(sql).toArray();
  }

  /** The storage keeps prepared statements by their text, so there is nothing to hold here. */
  prepare(sql: string): SqlStatement {
    return new ObjectStatement(this.#storage, sql);
  }

  transaction<T>(fn: () => T): T {
    const result = this.#storage.transactionSync(fn);
    commits.set(this.#storage, (commits.get(this.#storage) ?? 0) + 1);
    return result;
  }

  otherCommits(): number {
    return commits.get(this.#storage) ?? 0;
  }

  close(): void {}
}

class ObjectStatement implements SqlStatement {
  readonly #storage: ObjectStorage;
  readonly #text: string;

  constructor(storage: ObjectStorage, text: string) {
    this.#storage = storage;
    this.#text = text;
  }

  run(...params: SqlValue[]): number {
    const { sql } = this.#storage;
    sql.exec(this.#text, ...params).toArray();
    // The cursor's own count of rows written includes the indexes'.
    return Number(sql.exec("SELECT changes() AS n").toArray()[0]?.n ?? 0);
  }

  get(...params: SqlValue[]): SqlRow | undefined {
    return this.all(...params)[0];
  }

  all(...params: SqlValue[]): readonly SqlRow[] {
    return this.#storage.sql.exec(this.#text, ...params).toArray();
  }
}

const TROUBLES: readonly (readonly [string, SqlTrouble])[] = [
  ["SQLITE_BUSY", "busy"],
  ["SQLITE_LOCKED", "busy"],
  ["SQLITE_FULL", "full"],
  ["SQLITE_IOERR", "io"],
  ["SQLITE_READONLY", "readonly"],
  ["SQLITE_CORRUPT", "corrupt"],
  ["SQLITE_NOTADB", "notadb"],
];

/** The storage tells SQLite's result code in the text of its errors only. */
function troubleOf(error: unknown): SqlTrouble {
  const text = error instanceof Error ? error.message : "";
  return TROUBLES.find(([code]) => text.includes(code))?.[1] ?? "other";
}
