import { realpathSync, statSync } from "node:fs";

interface Known {
  readonly path: string;
  readonly name: string;
  /** `undefined` until it was seen for the first time: SQLite makes the files beside the database when it needs them. */
  identity: string | undefined;
}

/**
 * Whether a database and what SQLite keeps beside it (`-wal`, `-shm`) are still the files that were opened. A look costs some
 * microseconds, so that one a transaction is no burden.
 */
export class SameFiles {
  readonly #known: readonly Known[];

  /** `maySee` says which paths may be looked at; the others are left out. */
  constructor(file: string, maySee: (path: string) => boolean = () => true) {
    // SQLite follows a link, and keeps its files beside what it leads to.
    const real = realPath(file);
    this.#known = [
      { path: file, name: "the file", identity: identityOf(file) ?? "none" },
      { path: `${real}-wal`, name: "its -wal file", identity: undefined },
      { path: `${real}-shm`, name: "its -shm file", identity: undefined },
    ].filter(({ path }) => maySee(path));
  }

  /** Names one that is gone or another than at first; `undefined` when all are the same. */
  changed(): string | undefined {
    for (const known of this.#known) {
      const identity = identityOf(known.path);
      known.identity ??= identity;
      if (identity !== known.identity) return known.name;
    }
    return undefined;
  }
}

function identityOf(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? undefined : `${stat.dev}:${stat.ino}`;
}

function realPath(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file;
  }
}
