/**
 * Deno as a process that tests start.
 *
 * @module
 */
import { join, resolve } from "node:path";

export const ROOT = resolve(import.meta.dir, "../../..");

/** The binary that the npm package brings. */
export const DENO = join(ROOT, "node_modules/.bin/deno");

/** The environment for it: no colours, nothing of the surroundings that chooses a broker. */
export function denoEnv(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const inherited = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !/^(EDDY_|UPSTASH_)/.test(entry[0]),
  );
  return { ...Object.fromEntries(inherited), NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1", ...more };
}

/** A run of `deno task test`, whose results are told as they come. */
export class DenoTests {
  /** Failures by name, and names that passed with `undefined`. */
  readonly results = new Map<string, string | undefined>();
  readonly #process: Bun.Subprocess<"ignore", "pipe", "pipe">;
  readonly #ended: Promise<string>;
  #news = Promise.withResolvers<void>();
  #over = false;
  #failed: string | undefined;

  constructor(env: Readonly<Record<string, string>>) {
    this.#process = Bun.spawn([DENO, "task", "--quiet", "test", "--reporter=tap"], {
      cwd: ROOT,
      env: denoEnv(env),
      stdio: ["ignore", "pipe", "pipe"],
    });
    const err = new Response(this.#process.stderr).text();
    this.#ended = this.#read().then(() => err);
  }

  /**
   * Waits for one test.
   *
   * @throws {Error} with its failure's text, or when the run ended without it.
   */
  async passed(name: string): Promise<void> {
    while (!this.results.has(name)) {
      if (this.#over) throw new Error(`Deno did not run ${name}: ${(await this.#ended).slice(-2000)}`);
      await this.#news.promise;
    }
    const failure = this.results.get(name);
    if (failure !== undefined) throw new Error(failure);
  }

  /** Waits for the end of all; answers how many ran. */
  async ended(): Promise<{ readonly ran: number; readonly code: number; readonly err: string }> {
    const err = await this.#ended;
    return { ran: this.results.size, code: await this.#process.exited, err };
  }

  async stop(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.exited;
  }

  async #read(): Promise<void> {
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of this.#process.stdout as unknown as AsyncIterable<Uint8Array>) {
      text += decoder.decode(chunk, { stream: true });
      const lines = text.split("\n");
      text = lines.pop() ?? "";
      for (const line of lines) this.#line(line);
      this.#tell();
    }
    this.#over = true;
    this.#tell();
  }

  #tell(): void {
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  }

  /** One line of TAP: a result, and after a failure its reason as JSON. */
  #line(line: string): void {
    const result = /^(not )?ok \d+ - (.*)$/.exec(line);
    if (result !== null) {
      const name = (result[2] as string).replaceAll("\\#", "#").replaceAll("\\\\", "\\");
      this.#failed = result[1] === undefined ? undefined : name;
      if (this.#failed === undefined) this.results.set(name, undefined);
      return;
    }
    if (this.#failed === undefined || !line.startsWith("  {")) return;
    this.results.set(this.#failed, (JSON.parse(line) as { message: string }).message);
  }
}
