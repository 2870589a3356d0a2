/**
 * The driver over `node:sqlite`, for Deno (and other runtimes that have it). A module of its own, so that the adapter loads on
 * runtimes without it.
 *
 * Under Deno the file needs `--allow-read` and `--allow-write`; what SQLite puts beside it (`-wal`, `-shm`) needs none of its own.
 *
 * @module
 */
import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { SqlRow, SqlSource, SqlStatement, SqlValue } from "./driver.ts";
import { type FileDatabase, fileSource, type SqliteFileOptions } from "./file.ts";

export type { SqliteFileOptions } from "./file.ts";

/**
 * The database in a file, as a WAL database, so that readers never wait and several processes may share it.
 *
 * @example
 * ```ts
 * const broker = new SqliteBroker({ database: nodeSqlite({ file: "eddy.sqlite" }) });
 * ```
 *
 * @throws {TypeError} when `synchronous` or `busyTimeoutMs` is none of the allowed values, or the file is not a path.
 */
export function nodeSqlite(options: SqliteFileOptions): SqlSource {
  return fileSource(options, { connect: (file) => new NodeDatabase(file), codeOf, forbiddenBy, maySee });
}

class NodeDatabase implements FileDatabase {
  readonly #db: DatabaseSync;

  constructor(file: string) {
    this.#db = new DatabaseSync(file);
  }

  exec(sql: string): void {
    this.#db.exec(sql);
  }

  prepare(sql: string): SqlStatement {
    return new NodeStatement(this.#db.prepare(sql));
  }

  get inTransaction(): boolean {
    return this.#db.isTransaction;
  }

  close(): void {
    this.#db.close();
  }
}

class NodeStatement implements SqlStatement {
  readonly #statement: StatementSync;

  constructor(statement: StatementSync) {
    this.#statement = statement;
  }

  run(...params: SqlValue[]): void {
    this.#statement.run(...params);
  }

  get(...params: SqlValue[]): SqlRow | undefined {
    return this.#statement.get(...params);
  }

  all(...params: SqlValue[]): readonly SqlRow[] {
    return this.#statement.all(...params);
  }
}

/**
 * SQLite's own words for the codes that make a difference. Deno gives no code with an error of `exec` or of opening, so there
 * they are told by these.
 */
const WORDS: readonly (readonly [string, number])[] = [
  ["database is locked", 5],
  ["database table is locked", 6],
  ["attempt to write a readonly database", 8],
  ["disk I/O error", 10],
  ["database disk image is malformed", 11],
  ["database or disk is full", 13],
  ["unable to open database file", 14],
  ["file is not a database", 26],
];

function codeOf(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  const { errcode, code } = error as { errcode?: unknown; code?: unknown };
  if (typeof errcode === "number") return errcode;
  if (code !== "ERR_SQLITE_ERROR") return undefined;
  return WORDS.find(([words]) => error.message.includes(words))?.[1];
}

/** Deno's refusal of a file that its permissions leave out. */
function forbiddenBy(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== "NotCapable") return undefined;
  return "Deno does not let this program read and write it; allow both with --allow-read and --allow-write";
}

/** Deno asks or throws when a path is looked at that its permissions leave out; other runtimes have no such permissions. */
function maySee(path: string): boolean {
  const { Deno } = globalThis as {
    readonly Deno?: {
      readonly permissions: {
        querySync(asked: { readonly name: "read"; readonly path: string }): { readonly state: string };
      };
    };
  };
  return Deno === undefined || Deno.permissions.querySync({ name: "read", path }).state === "granted";
}
