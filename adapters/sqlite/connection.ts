import { BrokerError } from "../../src/errors.ts";
import { Remembered } from "../remembered.ts";
import type { SqlDriver, SqlSource } from "./driver.ts";
import { REMEMBER_LEASE_MS } from "./leases.ts";
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
  #opened: Opened | undefined;
  #opening: Promise<void> | undefined;
  #isClosed = false;

  constructor(source: SqlSource) {
    this.#source = source;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Opens the database and makes its tables. Callers at the same time share one try; after a failed one it may be called again. */
  open(): Promise<void> {
    if (this.#opened !== undefined && !this.#isClosed) return Promise.resolve();
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #open(): Promise<void> {
    this.#refuseClosed("open");
    let driver: SqlDriver | undefined;
    try {
      driver = await this.#source.open();
      this.#opened = this.#prepare(driver);
    } catch (error) {
      driver?.close();
      throw brokerError("open", this.#source, error);
    }
    if (this.#isClosed) {
      this.#drop();
      this.#refuseClosed("open");
    }
  }

  #prepare(driver: SqlDriver): Opened {
    const sql = patiently(driver, () => {
      prepareSchema(driver);
      return prepareStatements(driver);
    });
    const { busyTimeoutMs } = driver;
    if (busyTimeoutMs === undefined) return { driver, sql, turns: undefined };
    const turns = new Turns({
      busyTimeoutMs,
      otherCommits: () => driver.otherCommits?.(),
      isBusy: (error) => error instanceof BrokerError && this.#source.trouble(error.cause) === "busy",
    });
    return { driver, sql, turns };
  }

  /** Runs `fn` as the one write transaction of a verb: at once, unless another process has the database or is due. */
  async write<T>(verb: string, fn: (sql: Statements) => T): Promise<T> {
    const turns = this.#opened?.turns;
    const transact = () => this.#run(verb, ({ driver, sql }) => driver.transaction(() => fn(sql)));
    return turns === undefined ? transact() : turns.take(transact);
  }

  /** Runs `fn`, whose statements only read; each sees the database by itself. */
  read<T>(verb: string, fn: (sql: Statements) => T): T {
    return this.#run(verb, ({ driver, sql }) => this.#look(driver, () => fn(sql)));
  }

  /** A number that changes when another connection committed; `undefined` where there is none. */
  otherCommits(): number | undefined {
    return this.#run("watch", ({ driver }) => this.#look(driver, () => driver.otherCommits?.()));
  }

  /** The largest text or blob; known once it is open. */
  get maxValueBytes(): number {
    return this.#opened?.driver.maxValueBytes ?? Infinity;
  }

  close(): void {
    this.#isClosed = true;
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

  /** Reading is next to never in anybody's way (after a crash it may be): only then it waits. */
  #look<T>(driver: SqlDriver, fn: () => T): T {
    try {
      return fn();
    } catch (error) {
      if (this.#source.trouble(error) !== "busy") throw error;
      return patiently(driver, fn);
    }
  }

  #refuseClosed(verb: string): void {
    if (!this.#isClosed) return;
    throw new BrokerError("sqlite", verb, `Cannot ${verb}: the broker is closed; open a new one`);
  }
}

function patiently<T>(driver: SqlDriver, fn: () => T): T {
  return driver.patiently === undefined ? fn() : driver.patiently(fn);
}
