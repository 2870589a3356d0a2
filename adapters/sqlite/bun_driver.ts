/**
 * The driver over `bun:sqlite`. A module of its own, so that the adapter loads on runtimes without it.
 *
 * @module
 */

import { Database, type Statement } from "bun:sqlite";
import { statSync } from "node:fs";
import { dirname } from "node:path";
import {
  type SqlDriver,
  SqlRefusal,
  type SqlRow,
  type SqlSource,
  type SqlStatement,
  type SqlTrouble,
  SqlUnavailable,
  type SqlValue,
} from "./driver.ts";

export interface BunSqliteOptions {
  /** The database file; made when it is missing, its folder is not. */
  readonly file: string;
  /**
   * What survives a power failure. `"full"` (default): every commit reaches the disk before the verb answers, so nothing
   * accepted is lost. `"normal"`: the last commits before a power failure may be lost; a crash of the process or of the
   * worker alone loses nothing, and the file stays sound.
   */
  readonly synchronous?: "full" | "normal";
  /**
   * How long a verb waits for another process to end its transaction, in milliseconds, before it fails. 2,000 by default. The
   * process waits as a whole: SQLite is called synchronously.
   */
  readonly busyTimeoutMs?: number;
}

/** The file's identity is looked at no more often than this. */
const CHECK_EVERY_MS = 1000;

/**
 * The database in a file, as a WAL database, so that readers never wait and several processes may share it.
 *
 * @throws {TypeError} when `synchronous` or `busyTimeoutMs` is none of the allowed values, or the file is not a path.
 */
export function bunSqlite(options: BunSqliteOptions): SqlSource {
  const { file, synchronous = "full", busyTimeoutMs = 2000 } = options;
  if (typeof file !== "string" || file === "" || file === ":memory:" || file.startsWith("file:")) {
    throw new TypeError(
      `Cannot use SQLite: file is ${JSON.stringify(file)}; it must be the path of a file (for jobs in memory take the memory broker)`,
    );
  }
  if (synchronous !== "full" && synchronous !== "normal") {
    throw new TypeError(`Cannot use SQLite: synchronous is ${synchronous}; it must be "full" or "normal"`);
  }
  if (!Number.isInteger(busyTimeoutMs) || busyTimeoutMs < 0) {
    throw new TypeError(`Cannot use SQLite: busyTimeoutMs is ${busyTimeoutMs}; it must be an integer from 0`);
  }
  return {
    where: file,
    open: () => open(file, synchronous, busyTimeoutMs),
    trouble: troubleOf,
  };
}

async function open(file: string, synchronous: string, busyTimeoutMs: number): Promise<SqlDriver> {
  const db = connect(file);
  try {
    db.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    await useWal(db, file, busyTimeoutMs);
    db.run(`PRAGMA synchronous = ${synchronous}`);
    // Where fsync alone does not empty the drive's own cache (macOS), ask for more.
    if (synchronous === "full") db.run("PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1");
    db.run("PRAGMA journal_size_limit = 67108864");
    return new BunDriver(db, file);
  } catch (error) {
    db.close();
    throw error;
  }
}

function connect(file: string): Database {
  try {
    return new Database(file, { create: true, readwrite: true });
  } catch (error) {
    if (troubleOf(error) !== "other") throw error;
    const folder = dirname(file);
    const why = isFolder(file)
      ? "it is a folder"
      : isFolder(folder)
        ? "the file cannot be opened or made; look at its permissions"
        : `the folder ${folder} does not exist; make it first`;
    throw new SqlUnavailable(why, { cause: error });
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/**
 * Switches the file to WAL. SQLite's own waiting does not cover this switch when several processes open a new file at once,
 * so it is tried again here.
 */
async function useWal(db: Database, file: string, busyTimeoutMs: number): Promise<void> {
  const triesUntil = performance.now() + busyTimeoutMs;
  for (;;) {
    try {
      const row = db.query<{ journal_mode: string }, []>("PRAGMA journal_mode = WAL").get();
      if (row?.journal_mode === "wal") return;
      throw new SqlRefusal(
        `its journal mode is ${row?.journal_mode} and cannot be made WAL; put the file ${file} on a local disk`,
      );
    } catch (error) {
      if (troubleOf(error) !== "busy" || performance.now() >= triesUntil) throw error;
    }
    await new Promise<void>((resolve) => setTimeout(resolve, 5));
  }
}

class BunDriver implements SqlDriver {
  readonly maxValueBytes = 1_000_000_000;
  readonly #db: Database;
  readonly #statements: Statement[] = [];
  readonly #begin: Statement;
  readonly #commit: Statement;
  readonly #rollback: Statement;
  readonly #dataVersion: Statement<{ data_version: number }, []>;
  readonly #file: string;
  readonly #identity: string;
  #checkedAt: number;
  #isClosed = false;

  constructor(db: Database, file: string) {
    this.#db = db;
    this.#file = file;
    this.#begin = this.#keep(db.prepare("BEGIN IMMEDIATE"));
    this.#commit = this.#keep(db.prepare("COMMIT"));
    this.#rollback = this.#keep(db.prepare("ROLLBACK"));
    this.#dataVersion = db.prepare("PRAGMA data_version");
    this.#keep(this.#dataVersion);
    this.#identity = identityOf(file);
    this.#checkedAt = performance.now();
  }

  exec(sql: string): void {
    this.#db.run(sql);
  }

  prepare(sql: string): SqlStatement {
    return new BunStatement(this.#keep(this.#db.prepare(sql)));
  }

  transaction<T>(fn: () => T): T {
    this.#begin.run();
    try {
      const result = fn();
      this.#commit.run();
      return result;
    } catch (error) {
      // After some errors (a full disk, say) SQLite has rolled back already.
      if (this.#db.inTransaction) this.#rollback.run();
      throw error;
    }
  }

  otherCommits(): number {
    return this.#dataVersion.get()?.data_version ?? 0;
  }

  /** A removed file lives on for who has it open, and dies with them: jobs put into it would be lost in silence. */
  check(): void {
    const now = performance.now();
    if (now - this.#checkedAt < CHECK_EVERY_MS) return;
    if (identityOf(this.#file) !== this.#identity) {
      throw new SqlRefusal(
        "the file was removed or replaced while it was open; stop every worker, bring the file back or begin with a new one, and start again",
      );
    }
    this.#checkedAt = now;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const statement of this.#statements) statement.finalize();
    this.#db.close();
  }

  #keep<S extends Statement>(statement: S): S {
    this.#statements.push(statement);
    return statement;
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

function identityOf(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat === undefined ? "none" : `${stat.dev}:${stat.ino}`;
}

/** By SQLite's primary result code, the low byte of the extended one. */
const TROUBLES: ReadonlyMap<number, SqlTrouble> = new Map<number, SqlTrouble>([
  [5, "busy"],
  [6, "busy"],
  [8, "readonly"],
  [10, "io"],
  [11, "corrupt"],
  [13, "full"],
  [26, "notadb"],
]);

function troubleOf(error: unknown): SqlTrouble {
  const code = (error as { errno?: unknown } | null)?.errno;
  return typeof code === "number" ? (TROUBLES.get(code & 0xff) ?? "other") : "other";
}
