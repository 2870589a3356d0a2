/**
 * A real redis-server for tests: installed when it is missing, on a port and in a directory of its own, gone at the end, even
 * when the test's process is killed.
 *
 * @module
 */
import { rm } from "node:fs/promises";
import { RedisConnection } from "../../runtimes/bun/gateway/connection.ts";
import { parseRedisUrl } from "../../runtimes/bun/gateway/redis_url.ts";
import { type Argument, type Reply, ReplyError } from "../../runtimes/bun/gateway/resp.ts";
import { freePort, KeptProcess, READY_MS, startKept } from "./kept_server.ts";

export interface RedisOptions {
  /** Further settings, as in redis.conf. They win over the defaults. */
  readonly config?: Readonly<Record<string, string>>;
  /** Keeps every write on disk before it answers, so that `kill` and `restart` lose nothing. Default false. */
  readonly persist?: boolean;
}

export class RedisServer {
  readonly port: number;
  readonly url: string;
  readonly #directory: string;
  readonly #settings: readonly string[];
  readonly #connection: RedisConnection;
  #process: KeptProcess | undefined;

  private constructor(port: number, directory: string, options: RedisOptions) {
    this.port = port;
    this.url = `redis://127.0.0.1:${port}`;
    this.#directory = directory;
    this.#connection = new RedisConnection(parseRedisUrl(this.url), READY_MS);
    const settings: Record<string, string> = {
      port: String(port),
      bind: "127.0.0.1",
      dir: directory,
      save: "",
      appendonly: options.persist === true ? "yes" : "no",
      appendfsync: "always",
      "maxmemory-policy": "noeviction",
      ...options.config,
    };
    this.#settings = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  }

  static start(options: RedisOptions): Promise<RedisServer> {
    return startKept(
      "redis-server",
      async (directory) => new RedisServer(await freePort(), directory, options),
    );
  }

  /** Starts the process again on the same port and directory, after a `kill` or by itself. */
  async restart(): Promise<void> {
    await this.kill();
    this.#process = await KeptProcess.spawn("redis-server", this.#settings, this.#directory);
    await this.#process.ready(
      `redis-server on port ${this.port}`,
      async () => (await this.command("PING").catch(() => undefined)) === "PONG",
    );
  }

  /** Ends the process at once, as a crash would. Resolves when it is gone. */
  async kill(): Promise<void> {
    await this.#process?.end("SIGKILL");
    this.#process = undefined;
  }

  /** Makes the process stand still, as a stalled machine would; connections stay open. */
  freeze(): void {
    this.#process?.signal("SIGSTOP");
  }

  thaw(): void {
    this.#process?.signal("SIGCONT");
  }

  /**
   * Sends one command past everything else, as redis-cli would.
   *
   * @throws {Error} when Redis answers an error.
   */
  async command(...args: Argument[]): Promise<Reply> {
    const [reply] = await this.#connection.send([args], { base64: false, okDepth: 0 });
    if (reply instanceof ReplyError) throw new Error(reply.message);
    return reply as Reply;
  }

  /** Ends the process and removes its directory. May be called twice. */
  async stop(): Promise<void> {
    await this.kill();
    this.#connection.close();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

/** Starts a Redis with `maxmemory-policy noeviction`, and waits until it answers. */
export function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  return RedisServer.start(options);
}
