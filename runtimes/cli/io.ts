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
  /** Ends the output: resolves when all that was printed has left the process. Nothing can be printed afterwards. */
  close(): Promise<void>;
}

/** The streams of this process; how standard input is read is the runtime's. */
export function processIo(stdin: Io["stdin"]): Io {
  const terminal = process.stderr.isTTY === true;
  let shown = false;
  const wipe = () => {
    if (shown) process.stderr.write("\r\x1b[K");
    shown = false;
  };
  // A reader that went away (`| head`) ends the output, not the work.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
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
    stdin,
    stdinIsTerminal: process.stdin.isTTY === true,
    async close() {
      wipe();
      await Promise.all([process.stdout, process.stderr].map(ended));
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
