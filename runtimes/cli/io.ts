/**
 * A command's standard streams.
 *
 * @module
 */
import process from "node:process";

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
  let shown = false;
  const wipe = () => {
    if (shown) process.stderr.write("\r\x1b[K");
    shown = false;
  };
  let lost: string | undefined;
  for (const stream of [process.stdout, process.stderr]) {
    // Only the first says why; all later ones follow from it.
    stream.once("error", (error) => {
      const code = codeOf(error);
      // A reader that went away (`| head`) ends the output, not the work.
      if (code !== "EPIPE") lost ??= code;
    });
    stream.on("error", () => {});
  }
  return {
    out(line) {
      wipe();
      process.stdout.write(`${line}\n`);
    },
    err(line) {
      wipe();
      process.stderr.write(`${line}\n`);
    },
    progress(text) {
      if (!terminal) return;
      process.stderr.write(`\r\x1b[K${text}`);
      shown = text !== "";
    },
    stdin: () => readOf(stdin),
    stdinIsTerminal: process.stdin.isTTY === true,
    async close() {
      wipe();
      await ended(process.stdout);
      if (lost !== undefined) {
        process.stderr.write(
          `Cannot write the output: the system answered ${lost}; make room or name another place\n`,
        );
      }
      await ended(process.stderr);
      return lost === undefined;
    },
  };
}

/** Ends a stream; resolves when its last byte is gone, or cannot go any more. */
function ended(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    stream.once("error", () => resolve());
    stream.end(() => resolve());
  });
}

/** Reads standard input; what goes wrong with it is told apart from what goes wrong with its lines. */
async function* readOf(stdin: Io["stdin"]): AsyncGenerator<Uint8Array> {
  try {
    yield* stdin();
  } catch (error) {
    throw new InputError(
      `Cannot read standard input: the system answered ${codeOf(error)}; give a file or a pipe`,
      {
        cause: error,
      },
    );
  }
}

function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : "an error without a code";
}
