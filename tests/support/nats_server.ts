/**
 * A real nats-server for tests, with JetStream on disk and a WebSocket listener: installed when it is missing, on ports and in a
 * directory of its own, gone at the end, even when the test's process is killed.
 *
 * @module
 */
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./redis_server.ts";

export interface NatsServerOptions {
  /** Lines added to the configuration: `authorization { … }` and the like. */
  readonly config?: string;
  /** The largest message, in bytes. Default 8 MiB. */
  readonly maxPayload?: number;
  /** Whether it has JetStream. Default true. */
  readonly jetStream?: boolean;
}

const READY_MS = 20_000;

export class NatsServer {
  /** The port of the plain protocol. */
  readonly port: number;
  readonly webSocketPort: number;
  /** The address of the WebSocket listener. */
  readonly url: string;
  readonly #directory: string;
  readonly #config: string;
  #process: RunningServer | undefined;

  private constructor(port: number, webSocketPort: number, directory: string, options: NatsServerOptions) {
    this.port = port;
    this.webSocketPort = webSocketPort;
    this.url = `ws://127.0.0.1:${webSocketPort}`;
    this.#directory = directory;
    this.#config = `
      host: "127.0.0.1"
      port: ${port}
      server_name: "eddy-test"
      max_payload: ${options.maxPayload ?? 8 * 1024 * 1024}
      ${options.jetStream === false ? "" : `jetstream { store_dir: "${join(directory, "store")}" }`}
      websocket { host: "127.0.0.1", port: ${webSocketPort}, no_tls: true }
      ${options.config ?? ""}
    `;
  }

  static async start(options: NatsServerOptions): Promise<NatsServer> {
    install();
    // Another process may take a port between its choice and its use: then others are chosen.
    for (let attempt = 1; ; attempt++) {
      const directory = await mkdtemp(join(tmpdir(), "eddy-nats-"));
      const server = new NatsServer(await freePort(), await freePort(), directory, options);
      try {
        await server.restart();
        return server;
      } catch (error) {
        await server.stop();
        if (attempt === 5) throw error;
      }
    }
  }

  /** Starts the process (again) on the same ports and store; one that still runs is killed first. */
  async restart(): Promise<void> {
    await this.kill();
    const file = join(this.#directory, "nats.conf");
    await writeFile(file, this.#config);
    this.#process = await RunningServer.spawn(this.#directory, file);
    const deadline = performance.now() + READY_MS;
    while (!(await this.#answers())) {
      if (this.#process.exited || performance.now() > deadline) {
        throw new Error(`nats-server did not come up on port ${this.port}: ${await this.#process.log()}`);
      }
      await Bun.sleep(10);
    }
  }

  /** Ends the process at once, as a crash would. Resolves when it is gone. */
  async kill(): Promise<void> {
    await this.#process?.end("SIGKILL");
    this.#process = undefined;
  }

  /** Ends the process as an operator would, with time to write its state. Resolves when it is gone. */
  async shutDown(): Promise<void> {
    await this.#process?.end("SIGTERM");
    this.#process = undefined;
  }

  /** Makes the process stand still, as a stalled machine would; connections stay open. Resolves when it does. */
  async freeze(): Promise<void> {
    const running = this.#process;
    running?.signal("SIGSTOP");
    while (running !== undefined && !(await running.standsStill())) await Bun.sleep(1);
  }

  thaw(): void {
    this.#process?.signal("SIGCONT");
  }

  /** Ends the process and removes its directory. May be called twice. */
  async stop(): Promise<void> {
    await this.kill();
    await rm(this.#directory, { recursive: true, force: true });
  }

  async #answers(): Promise<boolean> {
    try {
      const response = await fetch(`http://127.0.0.1:${this.webSocketPort}/`);
      await response.body?.cancel();
      return true;
    } catch {
      return false;
    }
  }
}

/** Starts a nats-server and waits until its WebSocket listener answers. */
export function startNats(options: NatsServerOptions = {}): Promise<NatsServer> {
  return NatsServer.start(options);
}

/** Says the server's process id, and ends the server when standard input ends before it. */
const KEEPER = `
  directory=$1; config=$2
  exec 3<&0
  nats-server -c "$config" >>"$directory/log" 2>&1 </dev/null 3<&- &
  server=$!
  echo $server
  (read -r line <&3; kill -9 $server; rm -rf "$directory") >/dev/null 2>&1 &
  guard=$!
  wait $server
  kill $guard
`;

/** One nats-server below a shell that ends it when this process is gone. */
class RunningServer {
  readonly #shell: Bun.Subprocess<"pipe", "pipe", "ignore">;
  readonly #pid: number;
  readonly #directory: string;
  exited = false;

  private constructor(shell: Bun.Subprocess<"pipe", "pipe", "ignore">, pid: number, directory: string) {
    this.#shell = shell;
    this.#pid = pid;
    this.#directory = directory;
    shell.exited.then(() => {
      this.exited = true;
    });
  }

  static async spawn(directory: string, config: string): Promise<RunningServer> {
    const shell = Bun.spawn(["bash", "-c", KEEPER, "nats", directory, config], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "ignore",
      env: { ...Bun.env, PATH: `${Bun.env.PATH}:/usr/sbin` },
    });
    const reader = shell.stdout.getReader();
    let line = "";
    while (!line.includes("\n")) {
      const { value, done } = await reader.read();
      if (done) throw new Error("Cannot start nats-server: its shell ended");
      line += new TextDecoder().decode(value);
    }
    reader.releaseLock();
    return new RunningServer(shell, Number(line), directory);
  }

  async standsStill(): Promise<boolean> {
    const status = await readFile(`/proc/${this.#pid}/stat`, "utf8").catch(() => "0 (gone) T");
    return /\) [Tt] /.test(`${status} `);
  }

  async log(): Promise<string> {
    const text = await Bun.file(join(this.#directory, "log"))
      .text()
      .catch(() => "no log");
    return text.slice(-1000);
  }

  signal(name: NodeJS.Signals): void {
    try {
      process.kill(this.#pid, name);
    } catch {
      // It has gone by itself.
    }
  }

  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    if (!this.exited) {
      // A process that stands still heeds no other signal.
      this.signal("SIGCONT");
      this.signal(signal);
    }
    await this.#shell.exited;
  }
}

/** Installs Debian's nats-server where there is none. Its service is not wanted, so it is kept from starting. */
function install(): void {
  if (Bun.which("nats-server") !== null || existsSync("/usr/sbin/nats-server")) return;
  const policy = "/usr/sbin/policy-rc.d";
  const own = !existsSync(policy);
  if (own) Bun.spawnSync(["sh", "-c", `printf '#!/bin/sh\\nexit 101\\n' > ${policy} && chmod +x ${policy}`]);
  try {
    for (const command of [
      ["apt-get", "update", "-qq"],
      ["apt-get", "install", "-y", "-qq", "nats-server"],
    ]) {
      const done = Bun.spawnSync(command, {
        env: { ...Bun.env, DEBIAN_FRONTEND: "noninteractive" },
        stdout: "ignore",
        stderr: "pipe",
      });
      if (done.exitCode !== 0) {
        throw new Error(
          `Cannot install nats-server: ${command.join(" ")} ended with ${done.exitCode}; install it by hand. ` +
            done.stderr.toString().slice(-500),
        );
      }
    }
  } finally {
    if (own) Bun.spawnSync(["rm", "-f", policy]);
  }
}
