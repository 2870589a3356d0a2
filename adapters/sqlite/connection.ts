import { BrokerError } from "../../src/errors.ts";
import { Remembered } from "../remembered.ts";
import { CROWD_MS, Crowd } from "./crowd.ts";
import type { SqlDriver, SqlSource, SqlTrouble } from "./driver.ts";
import { REMEMBER_LEASE_MS } from "./leases.ts";
import { onceFree } from "./patience.ts";
import { prepareSchema } from "./schema.ts";
import { prepareStatements, type Statements } from "./statements.ts";
import { brokerError } from "./trouble.ts";
import { Turns } from "./turns.ts";

interface Opened {
  readonly driver: SqlDriver;
  readonly sql: Statements;
  /** Absent where no other connection can be in the way. */
  readonly turns: Turns | undefined;
}

/** One connection to a database: opened once for all queues, each verb one transaction, each error a `BrokerError`. */
export class Connection {
  /**
   * Claims that got nothing, by queue and lease id. Copies of a claim come over the connection that sent it, so these need not
   * be in the database, and an idle worker's claims write nothing.
   */
  readonly spentClaims = new Remembered<true>(REMEMBER_LEASE_MS);
  readonly #source: SqlSource;
  readonly #crowd = new Crowd();
  /** Names it in the crowd, once it has been part of one. */
  #id: string | undefined;
  #opened: Opened | undefined;
  #opening: Promise<void> | undefined;
  readonly #closing = new AbortController();

  constructor(source: SqlSource) {
    this.#source = source;
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Opens the database and makes its tables. Callers at the same time share one try; after a failed one it may be called again. */
  open(): Promise<void> {
    if (this.#opened !== undefined && !this.isClosed) return Promise.resolve();
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #open(): Promise<void> {
    this.#refuseClosed("open");
    let driver: SqlDriver | undefined;
    try {
      driver = await this.#source.open(this.#closing.signal);
      this.#opened = await this.#prepare(driver);
      this.#refuseClosed("open");
    } catch (error) {
      this.#opened = undefined;
      driver?.close();
      this.#refuseClosed("open");
      throw brokerError("open", this.#source, error);
    }
  }

  async #prepare(driver: SqlDriver): Promise<Opened> {
    const sql = await this.#onceFree(driver, () => {
      prepareSchema(driver);
      return prepareStatements(driver);
    });
    const { busyTimeoutMs } = driver;
    if (busyTimeoutMs === undefined) return { driver, sql, turns: undefined };
    const turns = new Turns({
      busyTimeoutMs,
      otherCommits: () => driver.otherCommits?.(),
      isBusy: (error) => this.isBusy(error),
      crowd: this.#crowd,
    });
    return { driver, sql, turns };
  }

  /** Runs `fn` as the one write transaction of a verb: at once, unless another process has the database or is due. */
  async write<T>(verb: string, fn: (sql: Statements) => T): Promise<T> {
    const turns = this.#opened?.turns;
    const transact = () =>
      this.#run(verb, ({ driver, sql }) =>
        this.#crowd.isDue ? this.#counting(driver, sql, fn) : this.#transact(driver, () => fn(sql)),
      );
    return turns === undefined ? transact() : turns.take(transact);
  }

  /** Where the crowd could not be counted, that is no matter of the verb's: it is done without. */
  #counting<T>(driver: SqlDriver, sql: Statements, fn: (sql: Statements) => T): T {
    let isCounting = false;
    const act = () => {
      isCounting = true;
      this.#crowd.countAt(performance.now(), () => this.#countCrowd(sql));
      isCounting = false;
      return fn(sql);
    };
    try {
      return this.#transact(driver, act);
    } catch (error) {
      if (!isCounting) throw error;
      return this.#transact(driver, act);
    }
  }

  /** How many connections wanted the database lately and had to wait, this one included. */
  #countCrowd(sql: Statements): number {
    this.#id ??= crypto.randomUUID();
    const now = Date.now();
    sql.joinCrowd.run(this.#id, now);
    sql.leaveCrowd.run(now, CROWD_MS);
    return Number(sql.crowd.get()?.count);
  }

  /** On a full disk there may be room still in what SQLite keeps beside the database. */
  #transact<T>(driver: SqlDriver, fn: () => T): T {
    try {
      return driver.transaction(fn);
    } catch (error) {
      if (this.#source.trouble(error) !== "full" || driver.makeRoom?.() !== true) throw error;
      return driver.transaction(fn);
    }
  }

  /** Runs `fn`, whose statements only read; each sees the database by itself. A busy error says that it cannot be read now. */
  read<T>(verb: string, fn: (sql: Statements) => T): T {
    return this.#run(verb, ({ sql }) => fn(sql));
  }

  /** A number that changes when another connection committed; `undefined` where there is none. */
  otherCommits(): number | undefined {
    return this.#run("watch", ({ driver }) => driver.otherCommits?.());
  }

  /** While a transaction waits until others have ended theirs: resolves when it is through. */
  get waiting(): Promise<void> | undefined {
    return this.#opened?.turns?.waiting;
  }

  /** Does something that reads. Reading is next to never in anybody's way (after a crash it may be): only then it waits. */
  reading<T>(fn: () => T): Promise<T> {
    return this.#onceFree(this.#opened?.driver, fn);
  }

  /** Whether an error says that another connection has the database. */
  isBusy(error: unknown): boolean {
    return this.#troubleOf(error) === "busy";
  }

  /** Whether an error says that there is no room for what was to be written. */
  isFull(error: unknown): boolean {
    return this.#troubleOf(error) === "full";
  }

  /** The largest text or blob; known once it is open. */
  get maxValueBytes(): number {
    return this.#opened?.driver.maxValueBytes ?? Infinity;
  }

  close(): void {
    this.#closing.abort();
    this.#drop();
  }

  #drop(): void {
    const opened = this.#opened;
    this.#opened = undefined;
    opened?.driver.close();
  }

  #run<T>(verb: string, fn: (opened: Opened) => T): T {
    const opened = this.#opened;
    if (opened === undefined) {
      this.#refuseClosed(verb);
      throw new BrokerError("sqlite", verb, `Cannot ${verb}: the queue is not open; call open() first`);
    }
    try {
      opened.driver.check?.();
      return fn(opened);
    } catch (error) {
      throw brokerError(verb, this.#source, error);
    }
  }

  #onceFree<T>(driver: SqlDriver | undefined, act: () => T): Promise<T> {
    return onceFree(act, {
      isBusy: (error) => this.isBusy(error),
      busyTimeoutMs: driver?.busyTimeoutMs ?? 0,
      signal: this.#closing.signal,
    });
  }

  #troubleOf(error: unknown): SqlTrouble {
    return this.#source.trouble(error instanceof BrokerError ? error.cause : error);
  }

  #refuseClosed(verb: string): void {
    if (!this.isClosed) return;
    throw new BrokerError("sqlite", verb, `Cannot ${verb}: the broker is closed; open a new one`);
  }
}
