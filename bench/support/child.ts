/**
 * Contenders run in processes of their own: one does not warm up, or clutter the heap of, another. A child is told what to do by its
 * one argument, answers in lines of JSON, and ends when its standard input does, so it never outlives the bench.
 *
 * @module
 */
import { resolve } from "node:path";

/** Runs a child on Deno, with what it may need. */
export const DENO: readonly string[] = [
  resolve(import.meta.dir, "../../node_modules/.bin/deno"),
  "run",
  "--quiet",
  "--no-prompt",
  "--allow-net",
];

const CHILDREN = resolve(import.meta.dir, "../children");

export interface ChildOptions {
  /** Which runtime runs it, with its flags. Default this Bun. */
  readonly command?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** How long it may go on, in milliseconds. Default ten minutes. */
  readonly limitMs?: number;
}

const LIMIT_MS = 600_000;

/** A child that runs beside the bench: a gateway, a link, a worker of a fleet. */
export class Child {
  readonly #process: Bun.Subprocess<"pipe", "pipe", "pipe">;
  readonly #lines: AsyncGenerator<string>;
  readonly #errors: Promise<string>;
  readonly #cancel: () => void;
  #late = false;

  /** @param file below `bench/children`. */
  constructor(file: string, params: unknown, options: ChildOptions = {}) {
    this.#process = Bun.spawn(
      [...(options.command ?? [process.execPath]), resolve(CHILDREN, file), JSON.stringify(params)],
      {
        stdin: "pipe",
        stdout: "pipe",
        stderr: "pipe",
        env: { ...Bun.env, ...options.env },
      },
    );
    this.#lines = linesOf(this.#process.stdout);
    this.#errors = new Response(this.#process.stderr).text();
    const timer = setTimeout(() => {
      this.#late = true;
      this.#process.kill("SIGKILL");
    }, options.limitMs ?? LIMIT_MS);
    this.#cancel = () => clearTimeout(timer);
  }

  /**
   * The next thing it tells.
   *
   * @throws {Error} when it ended instead; with the end of what it wrote to standard error.
   */
  async next<T>(): Promise<T> {
    const { value, done } = await this.#lines.next();
    if (!done) return JSON.parse(value) as T;
    const code = await this.#process.exited;
    const why = this.#late ? "it took too long" : `it ended with ${code}`;
    throw new Error(`Cannot go on: a contender told nothing, ${why}. ${(await this.#errors).slice(-2000)}`);
  }

  /** Tells it something: a line of JSON. */
  tell(message: unknown): void {
    this.#process.stdin.write(`${JSON.stringify(message)}\n`);
    this.#process.stdin.flush();
  }

  /** Ends it. */
  async end(): Promise<void> {
    this.#cancel();
    this.#process.stdin.end();
    const grace = setTimeout(() => this.#process.kill("SIGKILL"), 5_000);
    await this.#process.exited;
    clearTimeout(grace);
  }
}

/**
 * Runs a child that tells one thing, and answers it.
 *
 * @throws {Error} when it fails.
 */
export async function runChild<T>(file: string, params: unknown, options?: ChildOptions): Promise<T> {
  const child = new Child(file, params, options);
  try {
    return await child.next<T>();
  } finally {
    await child.end();
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const part of stream) {
    text += decoder.decode(part, { stream: true });
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      yield text.slice(0, end);
      text = text.slice(end + 1);
    }
  }
}
