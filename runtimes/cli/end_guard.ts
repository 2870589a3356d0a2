/**
 * A worker's code can end the process in the middle (`process.exit()` in a handler). Nothing is settled or reported then, so the end must not look like a success.
 *
 * @module
 */
import { writeSync } from "node:fs";
import process from "node:process";
import { FAILED } from "./command.ts";

/** What ends a process that had a second signal: the platform's own doing. */
const SIGNAL_CODES: ReadonlySet<number> = new Set([130, 143]);

/** Notices when the process is ended by anybody but the command itself. */
export class EndGuard {
  #expected = false;
  #told = false;
  #lastWords: (() => string) | undefined;

  constructor() {
    process.on("exit", (code) => this.#ended(code));
    // `Deno.exit()` passes over the listeners of node's `process`, yet tells it to the page, which Deno makes believe it is.
    globalThis.addEventListener?.("unload", () => this.#ended(process.exitCode ?? 0));
  }

  /** Ends the process with the command's own exit code. */
  exit(code: number): never {
    this.#expected = true;
    process.exit(code);
  }

  /** Says what is to be told where a second signal ends the process; answers a function that ends it. */
  atSecondSignal(words: () => string): () => void {
    this.#lastWords = words;
    return () => {
      this.#lastWords = undefined;
    };
  }

  #ended(code: unknown): void {
    if (this.#expected || this.#told) return;
    this.#told = true;
    if (SIGNAL_CODES.has(Number(code))) {
      if (this.#lastWords !== undefined) tellNow(this.#lastWords());
      return;
    }
    tellNow(
      "Cannot finish: the worker's code ended the process; what it held comes again when its lease is over: throw an error instead of calling exit()",
    );
    process.exitCode = FAILED;
  }
}

/** Writes a line to standard error at the end of the process, when nothing that has to be waited for is written any more. */
function tellNow(line: string): void {
  try {
    writeSync(process.stderr.fd ?? 2, `${line}\n`);
  } catch {
    // Nobody reads it; the exit code tells as well.
  }
}
