/**
 * The driver over `bun:sqlite`. A module of its own, so that the adapter loads on runtimes without it.
 *
 * @module
 */
import { Database, type Statement } from "bun:sqlite";
import type { SqlRow, SqlSource, SqlStatement, SqlValue } from "./driver.ts";
import { type FileDatabase, fileSource, type SqliteFileOptions } from "./file.ts";

export type { SqliteFileOptions } from "./file.ts";

/**
 * The database in a file, as a WAL database, so that readers never wait and several processes may share it.
 *
 * @example
 * ```ts
 * const broker = new SqliteBroker({ database: bunSqlite({ file: "eddy.sqlite" }) });
 * ```
 *
 * @throws {TypeError} when `synchronous` or `busyTimeoutMs` is none of the allowed values, or the file is not a path.
 */
export function bunSqlite(options: SqliteFileOptions): SqlSource {
  return fileSource(options, { connect: (file) => new BunDatabase(file), codeOf });
}

class BunDatabase implements FileDatabase {
  readonly #db: Database;
  readonly #statements: Statement[] = [];

  constructor(file: string) {
    this.#db = new Database(file, { create: true, readwrite: true });
  }

  exec(sql: string): void {
    this.#db.run(sql);
  }

  prepare(sql: string): SqlStatement {
    const statement = this.#db.prepare(sql);
    this.#statements.push(statement);
    return new BunStatement(statement);
  }

  get inTransaction(): boolean {
    return this.#db.inTransaction;
  }

  close(): void {
    for (const statement of this.#statements) statement.finalize();
    this.#db.close();
  }
}

class BunStatement implements SqlStatement {
  readonly #statement: Statement;

  constructor(statement: Statement) {
    this.#statement = statement;
  }

  run(...params: SqlValue[]): void {
    this.#statement.run(...params);
  }

  get(...params: SqlValue[]): SqlRow | undefined {
    return (this.#statement.get(...params) as SqlRow | null) ?? undefined;
  }

  all(...params: SqlValue[]): readonly SqlRow[] {
    return this.#statement.all(...params) as SqlRow[];
  }
}

function codeOf(error: unknown): number | undefined {
  const code = (error as { errno?: unknown } | null)?.errno;
  return typeof code === "number" ? code : undefined;
}
