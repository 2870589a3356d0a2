/**
 * The tables, and their version. `mod.ts` explains the layout to those who write into it from elsewhere.
 *
 * @module
 */

import { type SqlDriver, SqlRefusal } from "./driver.ts";

/** Goes up with every change of the layout. A database of a newer one is refused. */
const SCHEMA_VERSION = 1;

const NOW_MS = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)";

const META = `
CREATE TABLE IF NOT EXISTS eddy_meta (
  key TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
`;

const TABLES = `
CREATE TABLE IF NOT EXISTS eddy_queues (
  n INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  paused INTEGER NOT NULL DEFAULT 0,
  normal_passed INTEGER NOT NULL DEFAULT 0,
  low_passed INTEGER NOT NULL DEFAULT 0,
  memo TEXT
) STRICT;

CREATE TABLE IF NOT EXISTS eddy_jobs (
  seq INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'ready' CHECK (state IN ('ready', 'delayed', 'held', 'dead')),
  level INTEGER NOT NULL DEFAULT 1 CHECK (level IN (0, 1, 2)),
  attempts INTEGER NOT NULL DEFAULT 0,
  suspect INTEGER NOT NULL DEFAULT 0,
  enqueued_at INTEGER NOT NULL DEFAULT (${NOW_MS}),
  due_at INTEGER CHECK (due_at IS NOT NULL OR state <> 'delayed'),
  died_at INTEGER,
  id TEXT NOT NULL,
  headers TEXT NOT NULL DEFAULT '',
  error TEXT,
  body ANY NOT NULL CHECK (typeof(body) IN ('text', 'blob'))
) STRICT;

CREATE INDEX IF NOT EXISTS eddy_ready ON eddy_jobs (queue, level) WHERE state = 'ready';
CREATE INDEX IF NOT EXISTS eddy_delayed ON eddy_jobs (queue, due_at) WHERE state = 'delayed';
CREATE INDEX IF NOT EXISTS eddy_dead ON eddy_jobs (queue) WHERE state = 'dead';

CREATE TABLE IF NOT EXISTS eddy_leases (
  n INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  ended INTEGER NOT NULL DEFAULT 0,
  until INTEGER NOT NULL,
  held TEXT,
  UNIQUE (queue, id)
) STRICT;

CREATE INDEX IF NOT EXISTS eddy_lease_ends ON eddy_leases (queue, ended, until);

CREATE TABLE IF NOT EXISTS eddy_seen (
  queue INTEGER NOT NULL,
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  until INTEGER NOT NULL,
  answer TEXT,
  PRIMARY KEY (queue, kind, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS eddy_seen_ends ON eddy_seen (until);

CREATE TABLE IF NOT EXISTS eddy_crowd (
  connection TEXT NOT NULL PRIMARY KEY,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`;

/**
 * Makes what is missing, in one transaction, so that several processes may open a new file at once.
 *
 * @throws {SqlRefusal} when the database was made by a newer Eddy.
 */
export function prepareSchema(driver: SqlDriver): void {
  driver.transaction(() => {
    driver.exec(META);
    const stored = driver.prepare("SELECT value FROM eddy_meta WHERE key = 'schema'").get();
    if (stored === undefined) {
      driver.prepare("INSERT INTO eddy_meta (key, value) VALUES ('schema', ?)").run(String(SCHEMA_VERSION));
    } else if (Number(stored.value) !== SCHEMA_VERSION) {
      throw new SqlRefusal(
        `its layout is of version ${stored.value}, this Eddy knows version ${SCHEMA_VERSION}; use the Eddy that wrote it, or a newer one`,
      );
    }
    driver.exec(TABLES);
  });
}
