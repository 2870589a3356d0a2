/**
 * A copy of the project for mutants to live in.
 *
 * @module
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import type { Mutant } from "./mutant.ts";

const ROOT = resolve(import.meta.dir, "../..");
/** What a copy has: the rest is data, history, or built. */
const PARTS = [
  "src",
  "adapters",
  "runtimes",
  "examples",
  "tests",
  "package.json",
  "deno.json",
  "bunfig.toml",
  "tsconfig.json",
] as const;

/** What a test run came to. */
export interface TestRun {
  /** The first test that failed; `undefined` when all passed. */
  readonly failed: string | undefined;
  readonly passed: number;
  readonly ms: number;
}

export class Tree {
  readonly #folder = mkdtempSync(join(tmpdir(), "eddy-mutants-"));

  constructor() {
    for (const part of PARTS) cpSync(join(ROOT, part), join(this.#folder, part), { recursive: true });
    symlinkSync(join(ROOT, "node_modules"), join(this.#folder, "node_modules"));
  }

  /** Runs tests with a mutant in place (or none), and takes it out again. */
  async run(tests: readonly string[], timeoutMs: number, mutant?: Mutant): Promise<TestRun> {
    if (mutant === undefined) return this.#test(tests, timeoutMs);
    const path = join(this.#folder, mutant.file);
    const sound = readFileSync(path, "utf8");
    if (sound.split(mutant.search).length !== 2) {
      throw new Error(`Cannot apply ${mutant.name}: its text does not stand in ${mutant.file} exactly once`);
    }
    writeFileSync(
      path,
      sound.replace(mutant.search, () => mutant.replace),
    );
    try {
      return await this.#test(tests, timeoutMs);
    } finally {
      writeFileSync(path, sound);
    }
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #test(tests: readonly string[], timeoutMs: number): Promise<TestRun> {
    const startedAt = performance.now();
    const child = Bun.spawn(
      [process.execPath, "test", "--timeout", "20000", ...tests.map((one) => `./${relative(".", one)}`)],
      { cwd: this.#folder, stdout: "pipe", stderr: "pipe", env: { ...process.env, FORCE_COLOR: "0" } },
    );
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill("SIGKILL");
    }, timeoutMs);
    const [out, err] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    clearTimeout(timer);
    const code = await child.exited;
    const ms = performance.now() - startedAt;
    const text = `${out}\n${err}`;
    const passed = Number(/^\s*(\d+) pass$/m.exec(text)?.[1] ?? 0);
    const failed = /^\(fail\) (.+?)(?: \[[\d.]+ms\])?$/m.exec(text)?.[1];
    if (timedOut) return { failed: `no end within ${timeoutMs} ms`, passed, ms };
    if (code === 0) return { failed: undefined, passed, ms };
    // A run that broke down without a test that failed shows nothing of the guard.
    if (failed === undefined) throw new Error(`The tests broke down:\n${text.slice(-2_000)}`);
    return { failed, passed, ms };
  }
}
