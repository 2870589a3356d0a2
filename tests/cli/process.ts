/**
 * Running Eddy's commands as real processes.
 *
 * @module
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dir, "../..");
const MAIN = join(ROOT, "runtimes/bun/main.ts");

/** How long a test waits for a line or an end before it fails, in milliseconds. */
const PATIENCE_MS = 20_000;

/** The variables that would choose a broker; a test starts without any. */
const OWN_VARIABLES = /^(EDDY_|UPSTASH_)/;

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** What comes on standard input; nothing by default. */
  readonly input?: string | Uint8Array;
}

export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A folder of its own for a test's files. */
export async function scratch(): Promise<
  AsyncDisposable & { readonly path: string; file(name: string): string }
> {
  const path = await mkdtemp(join(tmpdir(), "eddy-cli-"));
  return {
    path,
    file: (name) => join(path, name),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}

/** Runs a command to its end. */
export async function eddy(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  await using command = startEddy(args, options);
  return await command.ended();
}

/** Starts a command; it is killed when the test leaves its scope. */
export function startEddy(args: readonly string[], options: RunOptions = {}): RunningCommand {
  return new RunningCommand([process.execPath, MAIN, ...args], options);
}

/** A process whose output is read line by line. */
export class RunningCommand implements AsyncDisposable {
  readonly #process: Bun.Subprocess<"pipe", "pipe", "pipe">;
  readonly #out: Collected;
  readonly #err: Collected;

  constructor(command: readonly string[], options: RunOptions) {
    const inherited = Object.entries(process.env).filter(([name]) => !OWN_VARIABLES.test(name));
    this.#process = Bun.spawn([...command], {
      cwd: options.cwd ?? tmpdir(),
      env: { ...Object.fromEntries(inherited), ...options.env },
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
    });
    this.#out = new Collected(this.#process.stdout);
    this.#err = new Collected(this.#process.stderr);
    if (options.input !== undefined) this.write(options.input);
    if (options.input !== undefined) this.endInput();
  }

  get out(): string {
    return this.#out.text;
  }

  get err(): string {
    return this.#err.text;
  }

  get pid(): number {
    return this.#process.pid;
  }

  write(input: string | Uint8Array): void {
    this.#process.stdin.write(input);
    this.#process.stdin.flush();
  }

  endInput(): void {
    this.#process.stdin.end();
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name);
  }

  /** Waits until standard output has a match. */
  async outputs(pattern: RegExp): Promise<RegExpExecArray> {
    return await within(this.#out.match(pattern), `output like ${pattern}`, () => `${this.out}\n${this.err}`);
  }

  /** Waits until standard error has a match. */
  async complains(pattern: RegExp): Promise<RegExpExecArray> {
    return await within(this.#err.match(pattern), `errors like ${pattern}`, () => `${this.out}\n${this.err}`);
  }

  /** Waits for the end. A process that a signal ended has 128 and its number as its code, as in a shell. */
  async ended(): Promise<Ended> {
    if (this.#process.stdin !== undefined && this.#process.exitCode === null) this.endInput();
    return await within(this.#end(), "the end", () => `${this.out}\n${this.err}`);
  }

  /** As {@linkcode RunningCommand.ended}, with standard input left open. */
  async exited(): Promise<Ended> {
    return await within(this.#end(), "the end", () => `${this.out}\n${this.err}`);
  }

  async #end(): Promise<Ended> {
    await Promise.all([this.#process.exited, this.#out.whole, this.#err.whole]);
    const { exitCode, signalCode } = this.#process;
    const numbers: Record<string, number> = { SIGINT: 2, SIGKILL: 9, SIGTERM: 15 };
    return {
      code: signalCode === null ? (exitCode ?? -1) : 128 + (numbers[signalCode] ?? 0),
      out: this.out,
      err: this.err,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null) this.#process.kill("SIGKILL");
    await this.#process.exited;
  }
}

/** A stream's text so far, and news of it. */
class Collected {
  text = "";
  readonly whole: Promise<void>;
  #waiting: (() => void)[] = [];

  constructor(stream: ReadableStream<Uint8Array>) {
    this.whole = this.#read(stream);
  }

  async match(pattern: RegExp): Promise<RegExpExecArray> {
    let over = false;
    const end = this.whole.then(() => {
      over = true;
    });
    for (;;) {
      const match = pattern.exec(this.text);
      if (match !== null) return match;
      if (over) throw new Error(`The process ended without ${pattern}: ${this.text}`);
      await Promise.race([end, new Promise<void>((resolve) => this.#waiting.push(resolve))]);
    }
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream as unknown as AsyncIterable<Uint8Array>) {
      this.text += decoder.decode(chunk, { stream: true });
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const resolve of waiting) resolve();
    }
  }
}

async function within<T>(work: Promise<T>, what: string, seen: () => string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Waited in vain for ${what}; seen: ${seen()}`)), PATIENCE_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
