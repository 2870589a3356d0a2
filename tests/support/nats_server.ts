/**
 * A real nats-server for tests, with JetStream on disk and a WebSocket listener: installed when it is missing, on ports and in a
 * directory of its own, gone at the end, even when the test's process is killed.
 *
 * @module
 */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort, KeptProcess, startKept } from "./kept_server.ts";

export interface NatsServerOptions {
  /** Lines added to the configuration: `authorization { … }` and the like. */
  readonly config?: string;
  /** The largest message, in bytes. Default 8 MiB. */
  readonly maxPayload?: number;
  /** Whether it has JetStream. Default true. */
  readonly jetStream?: boolean;
}

export class NatsServer {
  /** The port of the plain protocol. */
  readonly port: number;
  readonly webSocketPort: number;
  /** The address of the WebSocket listener. */
  readonly url: string;
  readonly #directory: string;
  readonly #config: (jetStream: boolean) => string;
  readonly #jetStream: boolean;
  #process: KeptProcess | undefined;

  private constructor(port: number, webSocketPort: number, directory: string, options: NatsServerOptions) {
    this.port = port;
    this.webSocketPort = webSocketPort;
    this.url = `ws://127.0.0.1:${webSocketPort}`;
    this.#directory = directory;
    this.#jetStream = options.jetStream ?? true;
    this.#config = (jetStream) => `
      host: "127.0.0.1"
      port: ${port}
      server_name: "eddy-test"
      max_payload: ${options.maxPayload ?? 8 * 1024 * 1024}
      ${!jetStream ? "" : `jetstream { store_dir: "${join(directory, "store")}" }`}
      websocket { host: "127.0.0.1", port: ${webSocketPort}, no_tls: true }
      ${options.config ?? ""}
    `;
  }

  static start(options: NatsServerOptions): Promise<NatsServer> {
    return startKept(
      "nats-server",
      async (directory) => new NatsServer(await freePort(), await freePort(), directory, options),
    );
  }

  /** Starts the process (again) on the same ports and store, with JetStream or without; one that still runs is killed first. */
  async restart(jetStream = this.#jetStream): Promise<void> {
    await this.kill();
    const file = join(this.#directory, "nats.conf");
    await writeFile(file, this.#config(jetStream));
    this.#process = await KeptProcess.spawn("nats-server", ["-c", file], this.#directory);
    await this.#process.ready(`nats-server on port ${this.port}`, () => this.#answers());
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
