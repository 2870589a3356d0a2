import type { SqlDriver } from "./driver.ts";

/**
 * Every statement of the adapter, prepared once a connection. Each goes by one row's key, or by an index that it names: left
 * to itself, SQLite scans a table of which an ANALYZE once said that it is small, and lists and ranges of `seq` fall to that.
 *
 * A job that joins a tail (a retry, one come due, a dead letter, a redrive) gets the next `seq`; one that is given back
 * keeps the one it had. So `seq` alone is the order within a state and level.
 */
export function prepareStatements(driver: SqlDriver) {
  const NEXT_SEQ = "(SELECT max(seq) + 1 FROM eddy_jobs)";
  const JOB = "seq, level, attempts, suspect, enqueued_at, id, headers, body";
  // A large body lies on pages of its own, which are read only when the column is: so looks name all but that.
  const LOOK = "seq, level, attempts, enqueued_at, due_at, died_at, id, headers, error";
  // The length of a blob is told without reading it.
  const BYTES =
    "CASE typeof(body) WHEN 'blob' THEN length(body) ELSE length(CAST(body AS BLOB)) END AS bytes";
  const select = (columns: string, index: string, where: string, order: string) =>
    driver.prepare(
      `SELECT ${columns} FROM eddy_jobs INDEXED BY ${index} WHERE queue = ? AND ${where} ORDER BY ${order} LIMIT ?`,
    );

  return {
    addQueue: driver.prepare("INSERT INTO eddy_queues (name) VALUES (?) ON CONFLICT (name) DO NOTHING"),
    queueNumber: driver.prepare("SELECT n FROM eddy_queues WHERE name = ?"),
    queueState: driver.prepare("SELECT paused, normal_passed, low_passed, memo FROM eddy_queues WHERE n = ?"),
    setPaused: driver.prepare("UPDATE eddy_queues SET paused = ? WHERE n = ?"),
    setPassed: driver.prepare("UPDATE eddy_queues SET normal_passed = ?, low_passed = ? WHERE n = ?"),
    setMemo: driver.prepare("UPDATE eddy_queues SET memo = ? WHERE n = ?"),

    addJob: driver.prepare(
      "INSERT INTO eddy_jobs (queue, state, level, enqueued_at, due_at, id, headers, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    readyOf: select(`seq, ${BYTES}`, "eddy_ready", "level = ? AND state = 'ready' AND seq > ?", "seq"),
    firstReady: select("seq", "eddy_ready", "level = ? AND state = 'ready'", "seq"),
    hold: driver.prepare(
      `UPDATE eddy_jobs INDEXED BY eddy_ready SET state = 'held', attempts = attempts + 1
        WHERE queue = ? AND level = ? AND state = 'ready' AND seq <= ? RETURNING ${JOB}`,
    ),
    job: driver.prepare(`SELECT ${JOB} FROM eddy_jobs WHERE seq = ?`),
    remove: driver.prepare("DELETE FROM eddy_jobs WHERE seq = ?"),
    release: driver.prepare("UPDATE eddy_jobs SET state = 'ready', attempts = attempts - 1 WHERE seq = ?"),
    takeBack: driver.prepare(
      `UPDATE eddy_jobs SET state = 'ready', suspect = 1 WHERE seq = ? RETURNING ${BYTES}`,
    ),
    retryNow: driver.prepare(
      `UPDATE eddy_jobs SET seq = ${NEXT_SEQ}, state = 'ready', suspect = 0, error = ? WHERE seq = ?`,
    ),
    retryLater: driver.prepare(
      `UPDATE eddy_jobs SET seq = ${NEXT_SEQ}, state = 'delayed', suspect = 0, error = ?, due_at = ? WHERE seq = ?`,
    ),
    bury: driver.prepare(
      `UPDATE eddy_jobs SET seq = ${NEXT_SEQ}, state = 'dead', error = ?, died_at = ?, attempts = coalesce(?, attempts) WHERE seq = ?`,
    ),
    dueRows: select("seq", "eddy_delayed", "state = 'delayed' AND due_at <= ?", "due_at, seq"),
    becomeReady: driver.prepare(
      `UPDATE eddy_jobs SET seq = ${NEXT_SEQ}, state = 'ready', due_at = NULL WHERE seq = ? RETURNING ${BYTES}`,
    ),
    nextDue: driver.prepare(
      "SELECT due_at, seq FROM eddy_jobs INDEXED BY eddy_delayed WHERE queue = ? AND state = 'delayed' ORDER BY due_at, seq LIMIT 1",
    ),
    anyReady: driver.prepare(
      "SELECT 1 FROM eddy_jobs INDEXED BY eddy_ready WHERE queue = ? AND state = 'ready' LIMIT 1",
    ),

    lease: driver.prepare("SELECT n, ended, held FROM eddy_leases WHERE queue = ? AND id = ?"),
    addLease: driver.prepare(
      "INSERT INTO eddy_leases (queue, id, ended, until, held) VALUES (?, ?, ?, ?, ?)",
    ),
    setHeld: driver.prepare("UPDATE eddy_leases SET held = ? WHERE n = ?"),
    endLease: driver.prepare("UPDATE eddy_leases SET ended = 1, until = ?, held = ? WHERE n = ?"),
    extendLease: driver.prepare(
      "UPDATE eddy_leases SET until = ? WHERE queue = ? AND id = ? AND ended = 0 RETURNING n",
    ),
    runOut: driver.prepare(
      "SELECT n, held FROM eddy_leases INDEXED BY eddy_lease_ends WHERE queue = ? AND ended = 0 AND until <= ? ORDER BY until LIMIT ?",
    ),
    nextEnd: driver.prepare(
      "SELECT until FROM eddy_leases INDEXED BY eddy_lease_ends WHERE queue = ? AND ended = 0 ORDER BY until LIMIT 1",
    ),
    oldLeases: driver.prepare(
      "SELECT n FROM eddy_leases INDEXED BY eddy_lease_ends WHERE queue = ? AND ended = 1 AND until <= ? LIMIT ?",
    ),
    forgetLease: driver.prepare("DELETE FROM eddy_leases WHERE n = ?"),
    heldLists: driver.prepare(
      "SELECT held FROM eddy_leases INDEXED BY eddy_lease_ends WHERE queue = ? AND ended = 0",
    ),

    seen: driver.prepare("SELECT until, answer FROM eddy_seen WHERE queue = ? AND kind = ? AND key = ?"),
    see: driver.prepare(
      "INSERT OR REPLACE INTO eddy_seen (queue, kind, key, until, answer) VALUES (?, ?, ?, ?, ?)",
    ),
    oldSeen: driver.prepare(
      "SELECT queue, kind, key FROM eddy_seen INDEXED BY eddy_seen_ends WHERE until <= ? LIMIT ?",
    ),
    forgetSeen: driver.prepare("DELETE FROM eddy_seen WHERE queue = ? AND kind = ? AND key = ?"),

    joinCrowd: driver.prepare("INSERT OR REPLACE INTO eddy_crowd (connection, at) VALUES (?, ?)"),
    leaveCrowd: driver.prepare("DELETE FROM eddy_crowd WHERE abs(at - ?) > ?"),
    crowd: driver.prepare("SELECT count(*) AS count FROM eddy_crowd"),

    sizes: driver.prepare(
      `SELECT
        (SELECT count(*) FROM eddy_jobs INDEXED BY eddy_ready WHERE queue = q.n AND state = 'ready') AS ready,
        (SELECT count(*) FROM eddy_jobs INDEXED BY eddy_delayed WHERE queue = q.n AND state = 'delayed') AS delayed,
        (SELECT count(*) FROM eddy_jobs INDEXED BY eddy_delayed WHERE queue = q.n AND state = 'delayed' AND due_at <= ?) AS due,
        (SELECT total(json_array_length(held)) FROM eddy_leases INDEXED BY eddy_lease_ends WHERE queue = q.n AND ended = 0) AS held,
        (SELECT count(*) FROM eddy_jobs INDEXED BY eddy_dead WHERE queue = q.n AND state = 'dead') AS dead,
        q.paused
      FROM eddy_queues q WHERE q.n = ?`,
    ),
    look: driver.prepare(`SELECT ${LOOK} FROM eddy_jobs WHERE seq = ?`),
    body: driver.prepare("SELECT body FROM eddy_jobs WHERE seq = ?"),
    peekReady: select(LOOK, "eddy_ready", "level = ? AND state = 'ready'", "seq"),
    peekDue: select(LOOK, "eddy_delayed", "level = ? AND state = 'delayed' AND due_at <= ?", "due_at, seq"),
    peekDelayed: select(LOOK, "eddy_delayed", "state = 'delayed' AND due_at > ?", "due_at, seq"),
    peekDead: select(LOOK, "eddy_dead", "state = 'dead'", "seq"),

    lastSeq: driver.prepare("SELECT max(seq) AS seq FROM eddy_jobs"),
    addLine: driver.prepare(
      "INSERT INTO eddy_jobs (queue, state, id, body) VALUES (0, 'dead', 'line', '') RETURNING seq",
    ),
    moveLine: driver.prepare(
      `UPDATE eddy_jobs INDEXED BY eddy_dead SET seq = ${NEXT_SEQ} WHERE queue = 0 AND state = 'dead' RETURNING seq`,
    ),
    clear: driver.prepare(`DELETE FROM eddy_jobs WHERE seq = ? RETURNING ${BYTES}`),
    readyUpTo: select("seq", "eddy_ready", "state = 'ready' AND seq <= ?", "level, seq"),
    dueUpTo: select("seq", "eddy_delayed", "state = 'delayed' AND due_at <= ? AND seq <= ?", "due_at, seq"),
    delayedUpTo: select(
      "seq",
      "eddy_delayed",
      "state = 'delayed' AND due_at > ? AND seq <= ?",
      "due_at, seq",
    ),
    deadUpTo: select("seq", "eddy_dead", "state = 'dead' AND seq <= ?", "seq"),
    deadNamed: select(
      "seq",
      "eddy_dead",
      "state = 'dead' AND seq <= ? AND id IN (SELECT value FROM json_each(?))",
      "seq",
    ),
    revive: driver.prepare(
      `UPDATE eddy_jobs SET seq = ${NEXT_SEQ}, state = 'ready', attempts = 0, suspect = 0, error = NULL, died_at = NULL
        WHERE seq = ? RETURNING ${BYTES}`,
    ),
  };
}

export type Statements = ReturnType<typeof prepareStatements>;

/** One queue's part of the tables. */
export interface Tables {
  readonly sql: Statements;
  /** The queue's number. */
  readonly queue: number;
}
