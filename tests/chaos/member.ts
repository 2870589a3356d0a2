/**
 * One place in a chaos run that is always taken: a process that is started again as soon as it is killed, under another name.
 *
 * @module
 */
import { join } from "node:path";
import type { ProcessSettings } from "./process.ts";

export interface MemberOptions {
  readonly program: "worker_main.ts" | "producer_main.ts";
  readonly name: string;
  readonly broker: string;
  readonly env: Readonly<Record<string, string>>;
  readonly directory: string;
  readonly seed: number;
}

export class Member {
  /** Ends that no SIGKILL made, while nobody had told it to stop: there must be none. */
  readonly crashes: string[] = [];
  /** How often its process was started. */
  starts = 0;
  readonly #options: MemberOptions;
  #process: Bun.Subprocess<"pipe"> | undefined;
  #stopping = false;

  constructor(options: MemberOptions) {
    this.#options = options;
  }

  start(): void {
    const { program, broker, directory, seed, env } = this.#options;
    this.starts += 1;
    const name = `${this.#options.name}.${this.starts}`;
    const settings: ProcessSettings = { broker, notes: join(directory, `${name}.notes`), name, seed };
    const started = Bun.spawn([process.execPath, join(import.meta.dir, program)], {
      env: { ...process.env, ...env, EDDY_CHAOS: JSON.stringify(settings) },
      stdio: ["pipe", "inherit", "inherit"],
    });
    this.#process = started;
    started.exited.then(() => {
      if (started.signalCode !== "SIGKILL" && !(this.#stopping && started.exitCode === 0)) {
        this.crashes.push(`${name} ended with ${started.signalCode ?? started.exitCode}`);
      }
      if (!this.#stopping) this.start();
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  /** Asks it to stop and resolves when it has; one that has not after `withinMs` is killed, which counts as a crash. */
  async stop(withinMs: number): Promise<void> {
    this.#stopping = true;
    this.signal("SIGTERM");
    const late = setTimeout(() => {
      this.crashes.push(`${this.#options.name} did not stop within ${withinMs} ms`);
      this.signal("SIGKILL");
    }, withinMs);
    await this.#process?.exited;
    clearTimeout(late);
  }

  /** Ends it at once. */
  async end(): Promise<void> {
    this.#stopping = true;
    this.signal("SIGKILL");
    await this.#process?.exited;
  }
}
