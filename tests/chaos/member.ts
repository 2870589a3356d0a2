/**
 * One place in a chaos run that is always taken: a process that is started again as soon as it is killed, under another name.
 *
 * @module
 */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { notesFile } from "./notes.ts";
import type { ProcessSettings } from "./process.ts";
import { FROZEN, KILLED, type Troubles } from "./troubles.ts";

/** What a process of a run runs. */
export type Program = "worker_main.ts" | "producer_main.ts" | "http_producer_main.ts";

export interface MemberOptions {
  readonly program: Program;
  readonly name: string;
  readonly broker: string;
  readonly env: Readonly<Record<string, string>>;
  readonly directory: string;
  readonly seed: number;
  /** Where it is noted what is done to its processes. */
  readonly troubles: Troubles;
}

/** Whether a process was told to stop before it could listen for that: it has noted nothing yet. */
function isUnbegun({ signalCode }: Bun.Subprocess<"pipe">, notes: string): boolean {
  return signalCode === "SIGTERM" && (!existsSync(notes) || statSync(notes).size === 0);
}

export class Member {
  /** Ends that no SIGKILL made, while nobody had told it to stop: there must be none. */
  readonly crashes: string[] = [];
  /** How often its process was started. */
  starts = 0;
  readonly #options: MemberOptions;
  #process: Bun.Subprocess<"pipe"> | undefined;
  #thawed: (() => void) | undefined;
  #stopping = false;

  constructor(options: MemberOptions) {
    this.#options = options;
  }

  get isFrozen(): boolean {
    return this.#thawed !== undefined;
  }

  start(): void {
    const { program, broker, directory, seed, env, troubles } = this.#options;
    this.starts += 1;
    const name = this.#name;
    const settings: ProcessSettings = { broker, notes: notesFile(directory, name), name, seed };
    const started = Bun.spawn([process.execPath, join(import.meta.dir, program)], {
      env: { ...process.env, ...env, EDDY_CHAOS: JSON.stringify(settings) },
      stdio: ["pipe", "inherit", "inherit"],
    });
    this.#process = started;
    started.exited.then(() => {
      this.#thaw();
      // By us, or by itself when it met poison.
      if (started.signalCode === "SIGKILL") troubles.add(KILLED, name);
      else if (!this.#stopping || !(started.exitCode === 0 || isUnbegun(started, settings.notes))) {
        this.crashes.push(`${name} ended with ${started.signalCode ?? started.exitCode}`);
      }
      if (!this.#stopping) this.start();
    });
  }

  kill(): void {
    this.#process?.kill("SIGKILL");
  }

  /** Has its process stand still for so long. Resolves when it goes on. */
  async freeze(forMs: number): Promise<void> {
    const frozen = this.#process;
    this.#thawed = this.#options.troubles.begin(FROZEN, this.#name);
    frozen?.kill("SIGSTOP");
    await Bun.sleep(forMs);
    frozen?.kill("SIGCONT");
    // Another may stand in its place by now.
    if (frozen === this.#process) this.#thaw();
  }

  /** Asks it to stop and resolves when it has; one that has not after `withinMs` is killed, which counts as a crash. */
  async stop(withinMs: number): Promise<void> {
    this.#stopping = true;
    this.#process?.kill("SIGTERM");
    const late = setTimeout(() => {
      this.crashes.push(`${this.#options.name} did not stop within ${withinMs} ms`);
      this.kill();
    }, withinMs);
    await this.#process?.exited;
    clearTimeout(late);
  }

  /** Ends it at once. */
  async end(): Promise<void> {
    this.#stopping = true;
    this.kill();
    await this.#process?.exited;
  }

  get #name(): string {
    return `${this.#options.name}.${this.starts}`;
  }

  #thaw(): void {
    this.#thawed?.();
    this.#thawed = undefined;
  }
}
