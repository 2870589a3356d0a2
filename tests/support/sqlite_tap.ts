/**
 * What a connection asks of SQLite: each statement as it runs, with what it answered, by transaction.
 *
 * @module
 */

import type { SqlDriver, SqlRow, SqlValue } from "../../adapters/sqlite/mod.ts";

export interface TappedRun {
  readonly sql: string;
  readonly rows: readonly SqlRow[];
  /** Which transaction it belongs to, counted from 1; 0 outside of any. */
  readonly transaction: number;
}

/** Notes what goes over one driver. */
export class SqliteTap {
  readonly runs: TappedRun[] = [];
  #transactions = 0;
  #current = 0;

  /** To be given to `Scratch.database` as what is done to each connection. */
  readonly listen = (driver: SqlDriver): void => {
    const { prepare, transaction } = driver;
    driver.prepare = (sql) => {
      const statement = prepare.call(driver, sql);
      const note = (rows: readonly SqlRow[]) => this.runs.push({ sql, rows, transaction: this.#current });
      return {
        run(...params: SqlValue[]) {
          note([]);
          statement.run(...params);
        },
        get(...params: SqlValue[]) {
          const row = statement.get(...params);
          note(row === undefined ? [] : [row]);
          return row;
        },
        all(...params: SqlValue[]) {
          const rows = statement.all(...params);
          note(rows);
          return rows;
        },
      };
    };
    driver.transaction = (fn) => {
      this.#transactions += 1;
      this.#current = this.#transactions;
      try {
        return transaction.call(driver, fn) as ReturnType<typeof fn>;
      } finally {
        this.#current = 0;
      }
    };
  };

  /** How many runs of some kind each transaction had that had any. */
  perTransaction(is: (run: TappedRun) => boolean): number[] {
    const counts = new Map<number, number>();
    for (const run of this.runs) {
      if (is(run)) counts.set(run.transaction, (counts.get(run.transaction) ?? 0) + 1);
    }
    return [...counts.values()];
  }
}
