/**
 * The SQLite broker: the embedded default. Durable, one file, several processes at once, every capability but `waits`.
 * It runs over a small driver ({@linkcode SqlDriver}); those of `bun:sqlite` and `node:sqlite` (Deno) are modules of their own, which are not loaded
 * from here.
 *
 * ```ts
 * import { SqliteBroker } from "eddy/adapters/sqlite";
 * import { bunSqlite } from "eddy/adapters/sqlite/bun";
 *
 * const broker = new SqliteBroker({ database: bunSqlite({ file: "eddy.db" }) });
 * ```
 *
 * ## Layout
 *
 * All tables begin with `eddy_`, so they may share a file with an application's own. `eddy_meta` holds the layout's version
 * (`schema`).
 *
 * `eddy_queues`: one row a queue: `n` (its number), `name`, whether it is `paused`, its `memo`, and how often its lower
 * levels were passed over in a row (`normal_passed`, `low_passed`).
 *
 * `eddy_jobs`: one row a job, whatever its `state`: `ready`, `delayed`, `held` or `dead`.
 * - `seq`: the order within a state and `level` (0 high, 1 normal, 2 low). A job that joins a tail gets the next one, a job that
 *   is given back keeps its own.
 *   A row of queue 0 is no job: it is the line that the last `clear` or `redrive` drew.
 * - `attempts` charged so far, `suspect` (0 or 1), `enqueued_at`, `due_at` (delayed), `died_at` and `error` (dead): times are Unix
 *   milliseconds.
 * - `id`; `headers`: a JSON object of texts, or empty; `body`: TEXT or BLOB, exactly as it was given.
 *
 * `eddy_leases`: one row a claim: its `id`; `until` is its deadline and `held` the JSON list of the `seq`s under it. When it
 * has `ended`, it is remembered `until` then, and `held` lists the deliveries that were lost.
 *
 * `eddy_seen`: what must not be taken in twice `until` then: `kind` `job` (a deduplicated id) or `request` (an enqueue, with its
 * `answer`, one letter a job).
 *
 * `eddy_crowd`: connections that had to wait for others lately, and when (`at`): the more they are, the more seldom each looks.
 *
 * ## Large bodies
 *
 * A claim hands out 16 MiB of bodies at most, but at least one job. One that is cut short by this answers `nextDueMs` 0.
 *
 * ## Others in the way, and a full disk
 *
 * A verb waits for other connections' transactions for up to `busyTimeoutMs`, by a timer, opening included. The
 * time of one that stands in a line behind others of its own connection begins anew with each of them that is through. A verb that
 * waited in vain fails with a `BrokerError` whose `unchanged` says that nothing was done.
 *
 * On a full disk what SQLite keeps beside the file may have room still: it is used anew, so that jobs can be settled, and cleared
 * in ever smaller steps. Where even that is used up, nothing can be written, a removal neither, until others make some room.
 *
 * ## Enqueuing from elsewhere
 *
 * Any program with SQLite 3.37 or later may put a job in, also within a transaction of its own over the same file, which
 * makes the two one: the job is there if and only if the application's own change is.
 *
 * ```sql
 * INSERT INTO eddy_queues (name) VALUES ('emails') ON CONFLICT (name) DO NOTHING;
 * INSERT INTO eddy_jobs (queue, id, body)
 *   VALUES ((SELECT n FROM eddy_queues WHERE name = 'emails'), 'welcome-42', '{"to":"ada@example.org"}');
 * ```
 *
 * `level` and `headers` may be given too. To delay it, give `state` as `'delayed'` and `due_at` in Unix milliseconds. An
 * `id` is 1 to 200 printable ASCII characters without space and `|`. Workers see the job within some milliseconds.
 * A body with a NUL in it belongs into a BLOB: some drivers (Deno's) end a text there.
 *
 * @module
 */

import type { Broker, BrokerQueue, Capability, QueueSettings } from "../../src/broker.ts";
import { assertKnownFields } from "../../src/known_fields.ts";
import { checkFunction, checkOptions } from "../checks.ts";
import { ALL_BUT_WAITS } from "../offers.ts";
import { Connection } from "./connection.ts";
import type { SqlSource } from "./driver.ts";
import { SqliteQueue } from "./queue.ts";
import { Watchers } from "./watcher.ts";

export {
  type SqlDriver,
  SqlRefusal,
  type SqlRow,
  type SqlSource,
  type SqlStatement,
  type SqlTrouble,
  SqlUnavailable,
  type SqlValue,
} from "./driver.ts";

export interface SqliteBrokerOptions {
  /** The database: `bunSqlite({ file })`, for one. Opened by the first `open()` of a queue. */
  readonly database: SqlSource;
  /**
   * Unix milliseconds: the broker's clock, which decides leases, delays and windows. `Date.now` by default. All processes on one
   * file must go by the same clock.
   */
  readonly wallNow?: () => number;
}

const OPTION_FIELDS: ReadonlySet<string> = new Set<keyof SqliteBrokerOptions>(["database", "wallNow"]);

/** A connection to one database file. */
export class SqliteBroker implements Broker {
  readonly name = "sqlite";
  readonly capabilities: ReadonlySet<Capability> = ALL_BUT_WAITS;
  /** Always 0: the engine is in this process. */
  readonly requests = 0;
  readonly #connection: Connection;
  readonly #watchers: Watchers;
  readonly #wallNow: () => number;

  /** @throws {TypeError} when there is no database, an option is unknown, or the clock is no function. */
  constructor(options: SqliteBrokerOptions) {
    checkOptions("SQLite", options, "{ database: bunSqlite({ file }) }");
    checkDatabase(options.database);
    assertKnownFields("use SQLite", "", options, OPTION_FIELDS);
    this.#wallNow = options.wallNow ?? Date.now;
    checkFunction("SQLite", "wallNow", this.#wallNow, "() => Date.now()");
    this.#connection = new Connection(options.database);
    this.#watchers = new Watchers(this.#connection);
  }

  queue(name: string, settings: QueueSettings): BrokerQueue {
    return new SqliteQueue(name, settings, this.#connection, this.#watchers, this.#wallNow);
  }

  async close(): Promise<void> {
    this.#watchers.close();
    this.#connection.close();
  }
}

/** A file's name in its place is a likely mistake: the driver is in a module of its own. */
function checkDatabase(database: unknown): void {
  if (typeof (database as Partial<SqlSource> | null | undefined)?.open === "function") return;
  throw new TypeError(
    `Cannot use SQLite: database is ${database === undefined ? "missing" : "no driver's"}; give bunSqlite({ file }) from "eddy/adapters/sqlite/bun" or nodeSqlite({ file }) from "eddy/adapters/sqlite/node"`,
  );
}
