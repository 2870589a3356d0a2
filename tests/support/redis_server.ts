/**
 * A real redis-server for tests: installed when it is missing, on a port and in a directory of its own, gone at the end, even
 * when the test's process is killed.
 *
 * @module
 */
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RedisConnection } from "../../runtimes/bun/gateway/connection.ts";
import { parseRedisUrl } from "../../runtimes/bun/gateway/redis_url.ts";
import { type Argument, type Reply, ReplyError } from "../../runtimes/bun/gateway/resp.ts";

export interface RedisOptions {
  /** Further settings, as in redis.conf. They win over the defaults. */
  readonly config?: Readonly<Record<string, string>>;
  /** Keeps every write on disk before it answers, so that `kill` and `restart` lose nothing. Default false. */
  readonly persist?: boolean;
}

const READY_MS = 20_000;

export class RedisServer {
  readonly port: number;
  readonly url: string;
  readonly #directory: string;
  readonly #settings: readonly string[];
  readonly #connection: RedisConnection;
  #process: RunningRedis | undefined;

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

  static async start(options: RedisOptions): Promise<RedisServer> {
    install();
    // Another process may take the port between its choice and its use: then another is chosen.
    for (let attempt = 1; ; attempt++) {
      const directory = await mkdtemp(join(tmpdir(), "eddy-redis-"));
      const server = new RedisServer(await freePort(), directory, options);
      try {
        await server.restart();
        return server;
      } catch (error) {
        await server.stop();
        if (attempt === 5) throw error;
      }
    }
  }

  /** Starts the process again on the same port and directory, after a `kill` or by itself. */
  async restart(): Promise<void> {
    await this.kill();
    this.#process = await RunningRedis.spawn(this.#directory, this.#settings);
    const deadline = performance.now() + READY_MS;
    for (;;) {
      const answer = await this.command("PING").catch(() => undefined);
      if (answer === "PONG") return;
      if (this.#process.exited || performance.now() > deadline) {
        throw new Error(`redis-server did not come up on port ${this.port}`);
      }
      await Bun.sleep(10);
    }
  }

  /** Ends the process at once, as a crash would. Resolves when it is gone. */
  async kill(): Promise<void> {
    await this.#process?.kill();
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

/** Says the server's process id, and ends the server when standard input ends before it. */
const KEEPER = `
  directory=$1; shift
  exec 3<&0
  redis-server "$@" >/dev/null 2>&1 </dev/null 3<&- &
  server=$!
  echo $server
  (read -r line <&3; kill -9 $server; rm -rf "$directory") >/dev/null 2>&1 &
  guard=$!
  wait $server
  kill $guard
`;

/**
 * One redis-server below a shell that waits for the end of its standard input. The pipe closes with this process, however
 * it ends, and then the shell ends the server and removes its directory.
 */
class RunningRedis {
  readonly #shell: Bun.Subprocess<"pipe", "pipe", "ignore">;
  readonly #pid: number;
  exited = false;

  private constructor(shell: Bun.Subprocess<"pipe", "pipe", "ignore">, pid: number) {
    this.#shell = shell;
    this.#pid = pid;
    shell.exited.then(() => {
      this.exited = true;
    });
  }

  static async spawn(directory: string, settings: readonly string[]): Promise<RunningRedis> {
    const shell = Bun.spawn(["bash", "-c", KEEPER, "redis", directory, ...settings], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "ignore",
    });
    const reader = shell.stdout.getReader();
    let line = "";
    while (!line.includes("\n")) {
      const { value, done } = await reader.read();
      if (done) throw new Error("Cannot start redis-server: its shell ended");
      line += new TextDecoder().decode(value);
    }
    reader.releaseLock();
    return new RunningRedis(shell, Number(line));
  }

  signal(name: NodeJS.Signals): void {
    try {
      process.kill(this.#pid, name);
    } catch {
      // It has gone by itself.
    }
  }

  async kill(): Promise<void> {
    if (!this.exited) this.signal("SIGKILL");
    await this.#shell.exited;
  }
}

/** Installs Debian's redis-server where there is none. Its service is not wanted, so it is kept from starting. */
function install(): void {
  if (Bun.which("redis-server") !== null || existsSync("/usr/bin/redis-server")) return;
  const policy = "/usr/sbin/policy-rc.d";
  const own = !existsSync(policy);
  if (own) Bun.spawnSync(["sh", "-c", `printf '#!/bin/sh\\nexit 101\\n' > ${policy} && chmod +x ${policy}`]);
  try {
    for (const command of [
      ["apt-get", "update", "-qq"],
      ["apt-get", "install", "-y", "-qq", "redis-server"],
    ]) {
      const done = Bun.spawnSync(command, {
        env: { ...Bun.env, DEBIAN_FRONTEND: "noninteractive" },
        stdout: "ignore",
        stderr: "pipe",
      });
      if (done.exitCode !== 0) {
        throw new Error(
          `Cannot install redis-server: ${command.join(" ")} ended with ${done.exitCode}; install it by hand. ` +
            done.stderr.toString().slice(-500),
        );
      }
    }
  } finally {
    if (own) Bun.spawnSync(["rm", "-f", policy]);
  }
}

/** A port that was free a moment ago. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() =>
        address !== null && typeof address === "object" ? resolve(address.port) : reject(),
      );
    });
  });
}
