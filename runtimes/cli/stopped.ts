/**
 * Commands that a signal ends before they are done.
 *
 * @module
 */
import type { Platform } from "../../src/platform.ts";

/** A signal came, and the command ends without what it was started for. */
export class StoppedError extends Error {
  override name = "StoppedError";
  /** The exit code that a shell reports for the signal. */
  readonly code: number;

  /** @param when what was going on when it came, as in "while … was still being loaded". */
  constructor(signal: string, when: string) {
    super(`Stopped: ${signal} came ${when}`);
    this.code = signal === "SIGINT" ? 130 : 143;
  }
}

/**
 * The items of a source, until a stop signal comes: whoever reads them has then dealt with all that came before, and waits for nothing more.
 *
 * @param when see {@linkcode StoppedError}.
 * @throws {StoppedError} once a signal has come.
 */
export async function* unlessStopped<T>(
  source: AsyncIterable<T>,
  platform: Pick<Platform, "onStop">,
  when: string,
): AsyncGenerator<T> {
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  // Whether it comes is looked at by the race alone.
  stopped.catch(() => {});
  const forget = platform.onStop((reason) => reject(new StoppedError(reason, when)));
  const items = source[Symbol.asyncIterator]();
  try {
    for (;;) {
      const item = await Promise.race([stopped, items.next()]);
      if (item.done === true) return;
      yield item.value;
    }
  } finally {
    // The source itself is left as it is: closing it would wait for the item that is being read.
    forget();
  }
}
