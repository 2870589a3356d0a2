/**
 * A database in a file, for any runtime whose SQLite works on files: options, WAL, transactions, and whether the file is still
 * the one that was opened. What the runtimes' modules call differently is behind {@linkcode FileEngine}.
 *
 * @module
 */
import { statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { assertKnownFields } from "../../src/known_fields.ts";
import { checkOptions, checkWhole } from "../checks.ts";
import {
  type SqlDriver,
  SqlRefusal,
  type SqlSource,
  type SqlStatement,
  type SqlTrouble,
  SqlUnavailable,
} from "./driver.ts";
import { onceFree } from "./patience.ts";
import { SameFiles } from "./same_files.ts";

export interface SqliteFileOptions {
  /** The database file; made when it is missing, its folder is not. A relative path is one of the folder that is current now. */
  readonly file: string;
  /**
   * What survives a power failure. `"full"` (default): every commit reaches the disk before the verb answers, so nothing
   * accepted is lost. `"normal"`: the last commits before a power failure may be lost; a crash of the process or of the
   * worker alone loses nothing, and the file stays sound.
   */
  readonly synchronous?: "full" | "normal";
  /**
   * How long a verb waits for another process to end its transaction, in milliseconds, before it fails. 2,000 by default.
   * It waits by a timer, so all else in the process goes on.
   */
  readonly busyTimeoutMs?: number;
}

const OPTION_FIELDS: ReadonlySet<string> = new Set<keyof SqliteFileOptions>([
  "file",
  "synchronous",
  "busyTimeoutMs",
]);

/** A runtime's SQLite. */
export interface FileEngine {
  /** Opens the file, and makes it when it is missing. */
  connect(file: string): FileDatabase;
  /** SQLite's result code of an error, plain or extended; `undefined` where it is none of SQLite's, or is not known. */
  codeOf(error: unknown): number | undefined;
  /** Why the runtime itself does not let the file be opened, if that is what the error says. */
  forbiddenBy?(error: unknown): string | undefined;
  /** Whether the runtime lets a path be looked at; all may be where this is absent. */
  maySee?(path: string): boolean;
}

/** A connection of that SQLite. */
export interface FileDatabase {
  exec(sql: string): void;
  prepare(sql: string): SqlStatement;
  /** Whether a transaction is open. */
  readonly inTransaction: boolean;
  /** Ends its statements too. Called once. */
  close(): void;
}

/** Between two verbs that only read, whether the file is the same is looked at no more often than this, in milliseconds. */
const CHECK_EVERY_MS = 1000;

/**
 * The database in a file, as a WAL database, so that readers never wait and several processes may share it.
 *
 * @throws {TypeError} when an option is unknown, `synchronous` is none of its two values, `busyTimeoutMs` no number, or the file is not a path.
 * @throws {RangeError} when `busyTimeoutMs` is no whole number from 0 on.
 */
export function fileSource(options: SqliteFileOptions, engine: FileEngine): SqlSource {
  checkOptions("SQLite", options, '{ file: "eddy.db" }');
  assertKnownFields("use SQLite", "", options, OPTION_FIELDS);
  const { synchronous = "full", busyTimeoutMs = 2000 } = options;
  const file = pathOf(options.file);
  if (synchronous !== "full" && synchronous !== "normal") {
    throw new TypeError(`Cannot use SQLite: synchronous is ${synchronous}; it must be "full" or "normal"`);
  }
  checkWhole("SQLite", "busyTimeoutMs", busyTimeoutMs, 0);
  const trouble = (error: unknown) => troubleOf(engine.codeOf(error));
  return {
    where: file,
    trouble,
    async open(signal) {
      const db = connect(file, engine);
      try {
        db.exec("PRAGMA busy_timeout = 0");
        const isBusy = (error: unknown) => trouble(error) === "busy";
        await onceFree(() => setUp(db, file, synchronous), { isBusy, busyTimeoutMs, signal });
        return new FileDriver(db, new SameFiles(file, engine.maySee), busyTimeoutMs);
      } catch (error) {
        db.close();
        throw error;
      }
    },
  };
}

/** Made absolute at once: the program may change its folder later, and the file must stay the same. */
function pathOf(file: unknown): string {
  if (
    typeof file !== "string" ||
    file === "" ||
    file.includes("\0") ||
    file === ":memory:" ||
    file.startsWith("file:")
  ) {
    throw new TypeError(
      `Cannot use SQLite: file is ${file === undefined ? "missing" : JSON.stringify(file)}; it must be the path of a file (for jobs in memory take the memory broker)`,
    );
  }
  return resolve(file);
}

function connect(file: string, engine: FileEngine): FileDatabase {
  try {
    return engine.connect(file);
  } catch (error) {
    const forbidden = engine.forbiddenBy?.(error);
    if (forbidden !== undefined) throw new SqlUnavailable(forbidden, { cause: error });
    const trouble = troubleOf(engine.codeOf(error));
    if (trouble !== "other" && trouble !== "cantopen") throw error;
    throw new SqlUnavailable(whyUnopened(file), { cause: error });
  }
}

function whyUnopened(file: string): string {
  const folder = dirname(file);
  try {
    if (isFolder(file)) return "it is a folder";
    if (!isFolder(folder)) return `the folder ${folder} does not exist; make it first`;
    return "the file cannot be opened or made; look at its permissions";
  } catch (error) {
    // A name that is too long, links that lead to each other: it cannot even be looked at.
    return `the system answered ${(error as { code?: unknown }).code}; name another file`;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** Switches the file to WAL, which may be busy when several processes open a new file at once, and sets what is to hold of the connection. */
function setUp(db: FileDatabase, file: string, synchronous: "full" | "normal"): void {
  db.exec("PRAGMA journal_mode = WAL");
  const mode = db.prepare("PRAGMA journal_mode").get()?.journal_mode;
  if (mode !== "wal") {
    throw new SqlRefusal(
      `its journal mode is ${mode} and cannot be made WAL; put the file ${file} on a local disk`,
    );
  }
  db.exec(`PRAGMA synchronous = ${synchronous}`);
  // Where fsync alone does not empty the drive's own cache (macOS), ask for more.
  if (synchronous === "full") db.exec("PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1");
  db.exec("PRAGMA journal_size_limit = 67108864");
}

class FileDriver implements SqlDriver {
  readonly maxValueBytes = 1_000_000_000;
  readonly busyTimeoutMs: number;
  readonly #db: FileDatabase;
  readonly #begin: SqlStatement;
  readonly #commit: SqlStatement;
  readonly #rollback: SqlStatement;
  readonly #dataVersion: SqlStatement;
  readonly #checkpoint: SqlStatement;
  readonly #files: SameFiles;
  #checkedAt: number;
  #isClosed = false;

  constructor(db: FileDatabase, files: SameFiles, busyTimeoutMs: number) {
    this.busyTimeoutMs = busyTimeoutMs;
    this.#db = db;
    this.#files = files;
    this.#begin = db.prepare("BEGIN IMMEDIATE");
    this.#commit = db.prepare("COMMIT");
    this.#rollback = db.prepare("ROLLBACK");
    this.#dataVersion = db.prepare("PRAGMA data_version");
    this.#checkpoint = db.prepare("PRAGMA wal_checkpoint");
    this.#checkedAt = performance.now();
  }

  exec(sql: string): void {
    this.#db.exec(sql);
  }

  prepare(sql: string): SqlStatement {
    return this.#db.prepare(sql);
  }

  transaction<T>(fn: () => T): T {
    this.#begin.run();
    try {
      const result = fn();
      this.#commit.run();
      // Before anybody is told that it is kept.
      this.#look();
      return result;
    } catch (error) {
      // After some errors (a full disk, say) SQLite has rolled back already.
      if (this.#db.inTransaction) this.#rollback.run();
      throw error;
    }
  }

  /** Once all that the log holds is in the database, the log begins anew in the room that it has. */
  makeRoom(): boolean {
    try {
      const { log, checkpointed } = this.#checkpoint.get() ?? {};
      return log === checkpointed;
    } catch {
      // The database itself would have to grow for it.
      return false;
    }
  }

  otherCommits(): number {
    return Number(this.#dataVersion.get()?.data_version ?? 0);
  }

  check(): void {
    if (performance.now() - this.#checkedAt >= CHECK_EVERY_MS) this.#look();
  }

  /** A removed file lives on for who has it open, and dies with them: jobs put into it would be lost in silence. */
  #look(): void {
    const changed = this.#files.changed();
    if (changed !== undefined) {
      throw new SqlRefusal(
        `${changed} was removed or replaced while it was open; stop every worker, bring the file back or begin with a new one, and start again`,
      );
    }
    this.#checkedAt = performance.now();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#db.close();
  }
}

/** By SQLite's primary result code, the low byte of the extended one. */
const TROUBLES: ReadonlyMap<number, SqlTrouble> = new Map<number, SqlTrouble>([
  [5, "busy"],
  [6, "busy"],
  [8, "readonly"],
  [10, "io"],
  [11, "corrupt"],
  [13, "full"],
  [14, "cantopen"],
  [26, "notadb"],
]);

function troubleOf(code: number | undefined): SqlTrouble {
  return code === undefined ? "other" : (TROUBLES.get(code & 0xff) ?? "other");
}
