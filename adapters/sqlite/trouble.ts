import { BrokerError, BrokerRefusedError } from "../../src/errors.ts";
import { SqlRefusal, type SqlSource, type SqlTrouble, SqlUnavailable } from "./driver.ts";

/** What each trouble means for who reads the message, and what to do about it. */
const SENTENCES: Readonly<Record<Exclude<SqlTrouble, "cantopen">, string>> = {
  busy: "another process holds the database in a transaction for longer than busyTimeoutMs; let it end, or end it",
  full: "the disk is full or the database may not grow; make room",
  io: "reading or writing the file failed; look at the disk",
  readonly: "the file may only be read; give this process the right to write the file and its folder",
  corrupt:
    "the file is damaged; stop every worker and restore it, or save what can be read with sqlite3's .recover",
  notadb: "the file is not a SQLite database; name another file",
  other: "SQLite refused a statement",
};

/** Troubles that no further try can mend. */
const FINAL: ReadonlySet<SqlTrouble> = new Set<SqlTrouble>(["readonly", "corrupt", "notadb"]);

/** Troubles after which a transaction never began, or was undone by SQLite itself. What else fails a commit may show after a crash. */
const UNCHANGED: ReadonlySet<SqlTrouble> = new Set<SqlTrouble>(["busy", "full"]);

/** Verbs of several transactions: the ones before took effect. */
const IN_SLICES: ReadonlySet<string> = new Set(["clear", "redrive"]);

/**
 * A driver's error as the port wants it. Its text names the verb, the file and the mend; the bound values (bodies among
 * them) are in none of SQLite's own texts, and those go along as `cause` only.
 */
export function brokerError(verb: string, source: SqlSource, error: unknown): BrokerError {
  const { where } = source;
  if (error instanceof BrokerError) return error;
  if (error instanceof SqlRefusal)
    return new BrokerRefusedError("sqlite", verb, said(verb, where, error.message));
  if (error instanceof SqlUnavailable) {
    return new BrokerError("sqlite", verb, said(verb, where, error.message), { cause: error.cause });
  }
  const trouble = source.trouble(error);
  const kind = FINAL.has(trouble) ? BrokerRefusedError : BrokerError;
  return new kind("sqlite", verb, said(verb, where, sentence(trouble, verb, where, error)), {
    cause: error,
    unchanged: UNCHANGED.has(trouble) && !IN_SLICES.has(verb),
  });
}

function sentence(trouble: SqlTrouble, verb: string, where: string, error: unknown): string {
  if (trouble === "full" && verb === "clear") {
    return "the disk is full, and removing jobs takes a little room, too; make as much by other means as the -wal file beside it is large, and clear again";
  }
  if (trouble === "cantopen") {
    return `the file, or its -wal or -shm beside it, cannot be opened or made; let this process write the folder ${folderOf(where)}`;
  }
  const code = (error as { code?: unknown } | null)?.code;
  return trouble === "other" && typeof code === "string"
    ? `${SENTENCES.other} (${code})`
    : SENTENCES[trouble];
}

/** Without `node:path`, which not every runtime of this adapter has. */
function folderOf(file: string): string {
  const end = Math.max(file.lastIndexOf("/"), file.lastIndexOf("\\"));
  return end < 0 ? "." : file.slice(0, Math.max(1, end));
}

function said(verb: string, where: string, why: string): string {
  return `Cannot ${verb === "open" ? "open" : `${verb} on`} ${where}: ${why}`;
}
