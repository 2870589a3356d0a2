/** Each bench runs through, tiny, and tells its figures in the form that programs read. Nothing here is timed. */
import { describe, expect, test } from "bun:test";
import { delimiter, resolve } from "node:path";

const ROOT = resolve(import.meta.dir, "../..");
const BIN = resolve(ROOT, "node_modules/.bin");
const TIMEOUT_MS = 240_000;

/** How many figures each tells: one that went missing fails. */
const FIGURES: Readonly<Record<string, number>> = {
  rule: 6,
  requests: 27,
  link: 20,
  loopback: 24,
  latency: 10,
  idle: 6,
  depth: 15,
  fleet: 8,
  core: 10,
  cold: 4,
};

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly errors: string;
}

async function run(command: readonly string[]): Promise<Ended> {
  const child = Bun.spawn([...command], {
    cwd: ROOT,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { ...Bun.env, PATH: `${BIN}${delimiter}${Bun.env.PATH}` },
  });
  const [code, out, errors] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { code, out, errors };
}

const bench = (...args: string[]) => run([process.execPath, "bench/main.ts", ...args]);

describe("benches", () => {
  test("each is in this list", async () => {
    const { out } = await bench("--help");
    const named = [...out.matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map(([, name]) => name);
    expect(named.sort()).toEqual(Object.keys(FIGURES).sort());
  });

  for (const [name, figures] of Object.entries(FIGURES)) {
    test(
      name,
      async () => {
        const { code, out, errors } = await bench(name, "--tiny", "--json");
        expect({ code, errors: code === 0 ? "" : errors }).toEqual({ code: 0, errors: "" });
        const lines = out
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line) as Record<string, unknown>);
        for (const line of lines) {
          expect(Object.keys(line)).toEqual(["bench", "case", "value", "unit", "against", "ratio"]);
          expect(line.bench).toBe(name);
          expect(line.value).toBeNumber();
          expect(line.unit).toBeString();
          expect(line.against === null || typeof line.against === "string").toBe(true);
          expect(line.ratio === null || typeof line.ratio === "number").toBe(true);
        }
        const cases = lines.map((line) => line.case);
        expect(new Set(cases).size).toBe(cases.length);
        expect(cases.length).toBe(figures);
      },
      TIMEOUT_MS,
    );
  }

  test(
    "a table for people",
    async () => {
      const { code, out } = await bench("core", "--tiny");
      expect(code).toBe(0);
      expect(out).toMatch(/^core: the loop by itself/m);
      expect(out).toMatch(/^ {2}case +value/m);
      expect(out.match(/µs\/job/g)?.length).toBeGreaterThan(3);
    },
    TIMEOUT_MS,
  );

  test("a bench that is none", async () => {
    const { code, out, errors } = await bench("nope");
    expect(code).toBe(2);
    expect(out).toBe("");
    expect(errors).toContain("Cannot run bench nope: there is none");
  });

  test(
    "the types are right, the peers' among them",
    async () => {
      const { code, out } = await run(["tsc", "--noEmit", "-p", "bench/tsconfig.json"]);
      expect({ code, out }).toEqual({ code: 0, out: "" });
    },
    TIMEOUT_MS,
  );
});
