/**
 * A command's standard streams.
 *
 * @module
 */
import process from "node:process";
import { codeOf, Output } from "./output.ts";

export interface Io {
  /** Prints a line to standard output. */
  out(line: string): void;
  /** Prints a line to standard error. */
  err(line: string): void;
  /** Replaces the progress shown on the terminal's current line; does nothing when standard error is no terminal. */
  progress(text: string): void;
  /** Standard input, read as fast as it is asked for. */
  stdin(): AsyncIterable<Uint8Array>;
  readonly stdinIsTerminal: boolean;
  /**
   * Ends the output: resolves when all that was printed has left the process; with false when some of it could not be written, which standard error was told.
   * Nothing can be printed afterwards.
   */
  close(): Promise<boolean>;
}

/** Standard input could not be read any further. */
export class InputError extends Error {
  override name = "InputError";
}

/** The streams of this process; how standard input is read is the runtime's. */
export function processIo(stdin: Io["stdin"]): Io {
  const terminal = process.stderr.isTTY === true;
  const out = new Output(process.stdout);
  const err = new Output(process.stderr);
  let shown = false;
  const wipe = () => {
    if (shown) err.write("\r\x1b[K");
    shown = false;
  };
  return {
    out(line) {
      wipe();
      out.write(`${line}\n`);
    },
    err(line) {
      wipe();
      err.write(`${line}\n`);
    },
    progress(text) {
      if (!terminal) return;
      err.write(`\r\x1b[K${text}`);
      shown = text !== "";
    },
    stdin: () => readOf(stdin),
    stdinIsTerminal: process.stdin.isTTY === true,
    async close() {
      wipe();
      await out.end();
      if (out.trouble !== undefined) {
        err.write(
          `Cannot write the output: the system answered ${out.trouble}; make room or name another place\n`,
        );
      }
      await err.end();
      return out.trouble === undefined && err.trouble === undefined;
    },
  };
}

/** Reads standard input; what goes wrong with it is told apart from what goes wrong with its lines. */
async function* readOf(stdin: Io["stdin"]): AsyncGenerator<Uint8Array> {
  try {
    yield* stdin();
  } catch (error) {
    throw new InputError(
      `Cannot read standard input: the system answered ${codeOf(error)}; give a file or a pipe`,
      { cause: error },
    );
  }
}
