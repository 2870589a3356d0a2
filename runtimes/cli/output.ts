/**
 * A standard stream that a command writes to.
 *
 * @module
 */

/** Writes texts to a stream and remembers what could not be written. */
export class Output {
  readonly #stream: NodeJS.WriteStream;
  #trouble: string | undefined;
  /** Whether the stream takes nothing any more and would not even tell that it has ended. */
  #over = false;

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
    stream.on("error", (error) => this.#note(error));
    // Bun closes a stream that failed.
    stream.once("close", () => {
      this.#over = true;
    });
  }

  /** The system's code for what went wrong; nothing while all was written, or when a reader went away (`| head`): that ends the output, not the work. */
  get trouble(): string | undefined {
    return this.#trouble === "EPIPE" ? undefined : this.#trouble;
  }

  write(text: string): void {
    try {
      this.#stream.write(text);
    } catch (error) {
      // Where the stream is a file Deno writes at once, and throws; the stream then waits for the end of that write forever.
      this.#over = true;
      this.#note(error);
    }
  }

  /** Ends the stream; resolves when its last byte is gone, or cannot go any more. */
  end(): Promise<void> {
    if (this.#over) return Promise.resolve();
    return new Promise((resolve) => {
      for (const sign of ["error", "close"]) this.#stream.once(sign, () => resolve());
      this.#stream.end(() => resolve());
    });
  }

  /** Only the first error says why; all later ones follow from it. */
  #note(error: unknown): void {
    this.#trouble ??= codeOf(error);
  }
}

/** The system's code in an error: `"ENOSPC"`. */
export function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : "an error without a code";
}
