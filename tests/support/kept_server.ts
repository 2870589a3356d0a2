/**
 * A server of Debian's for tests: installed when it is missing, on ports and in a directory of its own, gone at the end, even when the
 * test's process is killed.
 *
 * @module
 */
import { existsSync } from "node:fs";
import { mkdtemp, readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type ServerProgram = "redis-server" | "nats-server";

/** How long a server may take until it answers. */
export const READY_MS = 20_000;

/**
 * Makes and starts a server in a directory of its own, after it installed the program where that is missing.
 *
 * @throws {Error} when the program cannot be installed, or five servers in turn did not come up.
 */
export async function startKept<S extends { restart(): Promise<void>; stop(): Promise<void> }>(
  program: ServerProgram,
  make: (directory: string) => Promise<S>,
): Promise<S> {
  install(program);
  // Another process may take a port between its choice and its use: then others are chosen.
  for (let attempt = 1; ; attempt++) {
    const server = await make(await mkdtemp(join(tmpdir(), `eddy-${program}-`)));
    try {
      await server.restart();
      return server;
    } catch (error) {
      await server.stop();
      if (attempt === 5) throw error;
    }
  }
}

/** Says the server's process id, and ends the server when standard input ends before it. */
const KEEPER = `
  directory=$1; shift
  exec 3<&0
  "$@" >>"$directory/log" 2>&1 </dev/null 3<&- &
  server=$!
  echo $server
  (read -r line <&3; kill -9 $server; rm -rf "$directory") >/dev/null 2>&1 &
  guard=$!
  wait $server
  kill $guard
`;

/**
 * One server below a shell that waits for the end of its standard input. The pipe closes with this process, however
 * it ends, and then the shell ends the server and removes its directory.
 */
export class KeptProcess {
  readonly #shell: Bun.Subprocess<"pipe", "pipe", "ignore">;
  readonly #pid: number;
  readonly #directory: string;
  #exited = false;

  private constructor(shell: Bun.Subprocess<"pipe", "pipe", "ignore">, pid: number, directory: string) {
    this.#shell = shell;
    this.#pid = pid;
    this.#directory = directory;
    shell.exited.then(() => {
      this.#exited = true;
    });
  }

  /** Starts the program; it need not answer yet. What it says goes to `log` in its directory. */
  static async spawn(
    program: ServerProgram,
    args: readonly string[],
    directory: string,
  ): Promise<KeptProcess> {
    const shell = Bun.spawn(["bash", "-c", KEEPER, program, directory, program, ...args], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "ignore",
      env: { ...Bun.env, PATH: `${Bun.env.PATH}:/usr/sbin` },
    });
    const reader = shell.stdout.getReader();
    let line = "";
    while (!line.includes("\n")) {
      const { value, done } = await reader.read();
      if (done) throw new Error(`Cannot start ${program}: its shell ended`);
      line += new TextDecoder().decode(value);
    }
    reader.releaseLock();
    return new KeptProcess(shell, Number(line), directory);
  }

  /**
   * Resolves when `answers` does with true.
   *
   * @throws {Error} with the end of the log, when the process ended or took more than `READY_MS`.
   */
  async ready(what: string, answers: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + READY_MS;
    while (!(await answers())) {
      if (this.#exited || performance.now() > deadline) {
        throw new Error(`${what} did not come up: ${await this.#log()}`);
      }
      await Bun.sleep(10);
    }
  }

  async standsStill(): Promise<boolean> {
    const status = await readFile(`/proc/${this.#pid}/stat`, "utf8").catch(() => "0 (gone) T");
    return /\) [Tt] /.test(`${status} `);
  }

  signal(name: NodeJS.Signals): void {
    try {
      process.kill(this.#pid, name);
    } catch {
      // It has gone by itself.
    }
  }

  /** Ends the process. Resolves when it is gone. */
  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    if (!this.#exited) {
      this.signal(signal);
      // A process that stands still heeds no signal but SIGKILL until it goes on.
      this.signal("SIGCONT");
    }
    await this.#shell.exited;
  }

  async #log(): Promise<string> {
    const text = await readFile(join(this.#directory, "log"), "utf8").catch(() => "no log");
    return text.slice(-1000);
  }
}

/** Installs Debian's package where the program is missing. Its service is not wanted, so it is kept from starting. */
function install(program: ServerProgram): void {
  if (Bun.which(program) !== null || existsSync(`/usr/sbin/${program}`)) return;
  const policy = "/usr/sbin/policy-rc.d";
  const own = !existsSync(policy);
  if (own) Bun.spawnSync(["sh", "-c", `printf '#!/bin/sh\\nexit 101\\n' > ${policy} && chmod +x ${policy}`]);
  try {
    for (const command of [
      ["apt-get", "update", "-qq"],
      ["apt-get", "install", "-y", "-qq", program],
    ]) {
      const done = Bun.spawnSync(command, {
        env: { ...Bun.env, DEBIAN_FRONTEND: "noninteractive" },
        stdout: "ignore",
        stderr: "pipe",
      });
      if (done.exitCode !== 0) {
        throw new Error(
          `Cannot install ${program}: ${command.join(" ")} ended with ${done.exitCode}; install it by hand. ` +
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
