/**
 * The SQLite adapter over the smallest engine that its seam is made for, of the shape that a Durable Object's `ctx.storage`
 * has: one `exec` with bindings that answers a cursor, blobs as `ArrayBuffer`, a transaction by callback, and neither
 * `BEGIN` nor `PRAGMA`. It proves that nothing of `bun:sqlite` leaks into the adapter.
 */

import { Database } from "bun:sqlite";
import {
  type SqlDriver,
  SqliteBroker,
  type SqlRow,
  type SqlSource,
  type SqlValue,
} from "../../adapters/sqlite/mod.ts";
import type { Harness } from "../support/conformance.ts";
import { EXPECTED } from "./harnesses.ts";
import { conformance } from "./run.ts";

/** A storage whose connections share one engine, and know how often it was written to. */
class ObjectStorage {
  readonly #db = new Database(":memory:");
  commits = 0;

  exec(sql: string, ...bindings: SqlValue[]): { toArray(): SqlRow[] } {
    if (/\b(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|PRAGMA|ATTACH)\b/.test(sql))
      throw new Error(`not allowed: ${sql}`);
    if (bindings.length > 100) throw new Error("too many bindings");
    if (bindings.length === 0 && sql.split(";").length > 2) {
      this.#db.run(sql);
      return { toArray: () => [] };
    }
    const rows = this.#db.query(sql).all(...bindings) as Record<string, unknown>[];
    return {
      toArray: () =>
        rows.map((row) =>
          Object.fromEntries(
            Object.entries(row).map(([name, value]) => [
              name,
              value instanceof Uint8Array ? value.slice().buffer : value,
            ]),
          ),
        ),
    };
  }

  transactionSync<T>(fn: () => T): T {
    const result = this.#db.transaction(fn).immediate();
    this.commits += 1;
    return result;
  }

  stop(): void {
    this.#db.close();
  }
}

function over(storage: ObjectStorage): SqlSource {
  return {
    where: "the object's storage",
    trouble: () => "other",
    async open(): Promise<SqlDriver> {
      let own = 0;
      return {
        maxValueBytes: 2_000_000,
        exec: (sql) => {
          storage.exec(sql);
        },
        prepare: (sql) => ({
          run: (...params) => {
            storage.exec(sql, ...params);
          },
          get: (...params) => storage.exec(sql, ...params).toArray()[0],
          all: (...params) => storage.exec(sql, ...params).toArray(),
        }),
        transaction: (fn) => {
          const result = storage.transactionSync(fn);
          own += 1;
          return result;
        },
        otherCommits: () => storage.commits - own,
        close: () => {},
      };
    },
  };
}

const harness: Harness = {
  name: "sqlite",
  lacks: { waits: "its claims answer at once" },
  shortMs: 1000,
  async start() {
    const storage = new ObjectStorage();
    let nowMs = 1_700_000_000_000;
    return {
      connect: () => new SqliteBroker({ database: over(storage), wallNow: () => nowMs }),
      async passMs(ms) {
        nowMs += ms;
      },
      async stop() {
        storage.stop();
      },
    };
  },
};

conformance(harness, EXPECTED.sqlite);
