/**
 * The seam between the adapter and a runtime's SQLite. It is made so narrow that `bun:sqlite`, `node:sqlite` and a Durable
 * Object's `ctx.storage.sql` all fit: every call is synchronous, parameters are positional, and what only some of them
 * know (files, journals, `BEGIN`) stays behind it.
 *
 * @module
 */

/** What can be bound. */
export type SqlValue = string | number | null | Uint8Array;

/** A row by column name. Integers are numbers, blobs a `Uint8Array` or an `ArrayBuffer`. */
export type SqlRow = Readonly<Record<string, unknown>>;

export interface SqlStatement {
  /** Runs it to its end. */
  run(...params: SqlValue[]): void;
  /** The first row; also of a statement that writes and has a `RETURNING`, as with `all`. */
  get(...params: SqlValue[]): SqlRow | undefined;
  all(...params: SqlValue[]): readonly SqlRow[];
}

/**
 * What went wrong, as far as the adapter treats it differently: `busy` another process holds the database; `full` no
 * space; `io` reading or writing failed; `cantopen` the file, or one that SQLite keeps beside it, cannot be opened or made;
 * `readonly`, `corrupt`, `notadb` it cannot serve; `other` all the rest.
 */
export type SqlTrouble = "busy" | "full" | "io" | "cantopen" | "readonly" | "corrupt" | "notadb" | "other";

/** A database that can be opened: what a runtime's driver module makes of its options. Making one does no I/O. */
export interface SqlSource {
  /** Names the database in messages: its file. */
  readonly where: string;
  /**
   * Opens a connection; while another one is in the way it waits for up to `busyTimeoutMs`, by a timer, and no longer than until
   * the signal. Rejects with an error that `trouble` can tell, a {@linkcode SqlRefusal} or a {@linkcode SqlUnavailable}.
   */
  open(signal?: AbortSignal): Promise<SqlDriver>;
  /** Tells an error of this runtime's SQLite. */
  trouble(error: unknown): SqlTrouble;
}

/** One open connection to a database. */
export interface SqlDriver {
  /** The largest text or blob it keeps, in bytes. */
  readonly maxValueBytes: number;
  /** Runs one or more statements without parameters or results. */
  exec(sql: string): void;
  prepare(sql: string): SqlStatement;
  /** Runs `fn` as one write transaction, which no other connection's comes between; rolls back when it throws. */
  transaction<T>(fn: () => T): T;
  /**
   * How long a verb may wait while another connection has the database, in milliseconds: statements themselves fail at once. Absent
   * where there can be none that is in the way.
   */
  readonly busyTimeoutMs?: number;
  /**
   * Called when a transaction found no room: sees to it that what the driver keeps beside the database can be used anew. Answers
   * whether the transaction is worth another try.
   */
  makeRoom?(): boolean;
  /**
   * A number that changes whenever another connection has committed. Cheap: it is asked many times a second. Absent where
   * there can be no other connection.
   */
  otherCommits?(): number;
  /**
   * Throws a {@linkcode SqlRefusal} when the database is no longer what was opened (its file was removed, say). Cheap: it
   * is called before each verb.
   */
  check?(): void;
  /** May be called twice. */
  close(): void;
}

/** Thrown by a driver when the database must not be used as it is: the message says why and what to do. Final. */
export class SqlRefusal extends Error {
  override name = "SqlRefusal";
}

/** Thrown by a driver when the database cannot be had now: the message says why. May be tried again. */
export class SqlUnavailable extends Error {
  override name = "SqlUnavailable";
}
