/**
 * Watches the Redis behind a gateway and tells when it cannot be used, and when it can again: without a request nobody else would notice.
 *
 * @module
 */
import { type Link, openLink, RedisLostError } from "./connection.ts";
import type { RedisAddress } from "./redis_url.ts";
import { type Reply, ReplyError } from "./resp.ts";

export interface RedisWatchOptions {
  readonly address: RedisAddress;
  /** Told a line for each change for the worse or the better; it holds no credentials. */
  readonly tell: (line: string) => void;
  /** How long Redis may take to connect or to answer, in milliseconds. Default 10,000. */
  readonly timeoutMs?: number;
  /** How long to wait between two tries to reach it, in milliseconds. Default 1,000. */
  readonly retryMs?: number;
  /** How often it is pinged while all is well, in milliseconds: one that is frozen breaks no connection. Default 5,000. */
  readonly pingMs?: number;
}

const TEXT = { base64: false, okDepth: 0 } as const;

/** Keeps a connection of its own until {@linkcode RedisWatch.stop}. */
export class RedisWatch {
  readonly #options: Required<RedisWatchOptions>;
  readonly #where: string;
  #stopped = false;
  #link: Link | undefined;
  #wake = () => {};
  /** What was told last of a Redis that cannot be used. */
  #trouble: string | undefined;

  constructor(options: RedisWatchOptions) {
    this.#options = { timeoutMs: 10_000, retryMs: 1_000, pingMs: 5_000, ...options };
    this.#where = `${options.address.hostname}:${options.address.port}`;
    void this.#run();
  }

  /** May be called twice. */
  stop(): void {
    this.#stopped = true;
    this.#link?.fail(new RedisLostError("The watch is over"));
    this.#wake();
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const why = await this.#untilLost();
      if (this.#stopped) return;
      if (why !== this.#trouble) {
        this.#options.tell(
          `${why}; until it answers requests get 503, and it is tried every ${this.#options.retryMs} ms`,
        );
      }
      this.#trouble = why;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, this.#options.retryMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** Connects and holds the connection; answers why that came to an end. */
  async #untilLost(): Promise<string> {
    const { address, timeoutMs, pingMs, tell } = this.#options;
    const lost = Promise.withResolvers<void>();
    let pings: ReturnType<typeof setInterval> | undefined;
    try {
      const link = await openLink(address, timeoutMs, lost.resolve);
      this.#link = link;
      const refused = refusalOf(await link.send([["PING"]], TEXT));
      if (refused !== undefined) return `Redis at ${this.#where} refuses commands: ${refused}`;
      if (this.#trouble !== undefined) tell(`Redis at ${this.#where} answers again`);
      this.#trouble = undefined;
      // A ping that is not answered in time ends the link.
      pings = setInterval(() => void link.send([["PING"]], TEXT).catch(() => {}), pingMs);
      await lost.promise;
      return `Lost the connection to Redis at ${this.#where}`;
    } catch (error) {
      return error instanceof RedisLostError ? error.message : `Cannot reach Redis at ${this.#where}`;
    } finally {
      clearInterval(pings);
      this.#link?.fail(new RedisLostError("The watch connects anew"));
      this.#link = undefined;
    }
  }
}

/** Why Redis would not serve, if it would not. A user who may not ping may still do what requests ask for. */
function refusalOf([reply]: readonly Reply[]): string | undefined {
  return reply instanceof ReplyError && !reply.message.startsWith("NOPERM") ? reply.message : undefined;
}
