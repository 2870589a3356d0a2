/**
 * What the SQLite tests share: a folder that is thrown away, and a queue over a file in it.
 *
 * @module
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunSqlite, type SqliteFileOptions } from "../../adapters/sqlite/bun_driver.ts";
import { type SqlDriver, SqliteBroker, type SqlSource } from "../../adapters/sqlite/mod.ts";
import type { BrokerQueue, QueueSettings } from "../../src/broker.ts";

export const SETTINGS: QueueSettings = { leaseMs: 30_000, requestTimeoutMs: 5000, dedupeWindowMs: 60_000 };

/** A folder of its own for one test, and the brokers opened in it. */
export class Scratch {
  readonly folder = mkdtempSync(join(tmpdir(), "eddy-sqlite-"));
  readonly #brokers: SqliteBroker[] = [];

  get file(): string {
    return join(this.folder, "jobs.db");
  }

  /** The database in the scratch file; `then` may do something to each connection that is opened. */
  database(
    options: Partial<SqliteFileOptions> = {},
    then: (driver: SqlDriver) => void = () => {},
  ): SqlSource {
    const source = bunSqlite({ file: this.file, synchronous: "normal", ...options });
    return {
      ...source,
      async open(signal) {
        const driver = await source.open(signal);
        then(driver);
        return driver;
      },
    };
  }

  broker(database: SqlSource = this.database(), wallNow?: () => number): SqliteBroker {
    const broker = new SqliteBroker({ database, ...(wallNow === undefined ? {} : { wallNow }) });
    this.#brokers.push(broker);
    return broker;
  }

  async queue(
    database?: SqlSource,
    wallNow?: () => number,
    settings: Partial<QueueSettings> = {},
  ): Promise<BrokerQueue> {
    const queue = this.broker(database, wallNow).queue("work", { ...SETTINGS, ...settings });
    await queue.open();
    return queue;
  }

  async remove(): Promise<void> {
    for (const broker of this.#brokers) await broker.close();
    rmSync(this.folder, { recursive: true });
  }
}

/** The error a promise rejects with. */
export async function errorOf(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error("it did not reject");
}
