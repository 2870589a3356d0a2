/**
 * The rules of the house that a machine can check: who may import whom, no ambient platform in the core, no oversized or dead files, nothing left over.
 */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

const ROOT = resolve(import.meta.dir, "../..");
const ROOMS = ["src", "adapters", "runtimes", "examples", "tests"] as const;

function filesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(folder, name));
}

interface Source {
  readonly path: string;
  readonly text: string;
  /** The text with comments and the contents of strings taken out. */
  readonly code: string;
  readonly imports: readonly string[];
}

const transpiler = new Bun.Transpiler({ loader: "ts" });

function importsOf(text: string): string[] {
  // Type-only imports vanish in the transpiler, and they bind rooms together all the same.
  const types = [
    ...text.matchAll(/\bimport\s+type\s[^;]*?from\s+"([^"]+)"/g),
    ...text.matchAll(/\bexport\s+type\s[^;]*?from\s+"([^"]+)"/g),
  ];
  return [
    ...new Set([
      ...transpiler.scanImports(text.replace(/^#!.*/, "")).map((one) => one.path),
      ...types.map((one) => one[1] as string),
    ]),
  ];
}

/** Blanks comments, strings, templates and regular expressions' worth of noise, so that words are looked for in code alone. */
function codeOf(text: string): string {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, " ")
    .replace(/"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g, '""')
    .replace(/`(?:[^`\\]|\\.)*`/g, "``")
    .replace(/\/\/.*$/gm, " ");
}

const sources: Source[] = ROOMS.flatMap(filesBelow).map((path) => {
  const text = readFileSync(join(ROOT, path), "utf8");
  return { path, text, code: codeOf(text), imports: importsOf(text) };
});

function room(path: string): string {
  return path.split("/")[0] as string;
}

/** Where an import leads: a path in this project, or a package's name. */
function target(source: Source, specifier: string): string {
  if (!specifier.startsWith(".")) return specifier;
  return relative(ROOT, resolve(ROOT, dirname(source.path), specifier));
}

function wrongImports(allowed: (source: Source, to: string) => boolean, inRoom: string): string[] {
  return sources
    .filter((source) => room(source.path) === inRoom)
    .flatMap((source) => source.imports.map((one) => ({ source, to: target(source, one) })))
    .filter(({ source, to }) => !allowed(source, to))
    .map(({ source, to }) => `${source.path} imports ${to}`);
}

const CLIENTS: Record<string, readonly RegExp[]> = {
  nats: [/^nats\.ws$/],
  // The embedded drivers of the runtimes.
  sqlite: [/^bun:sqlite$/, /^node:(sqlite|fs|path)$/],
};

describe("who may import whom", () => {
  test("there is something to check", () => {
    for (const one of ["src", "adapters", "runtimes"]) {
      expect(sources.filter((source) => room(source.path) === one).length).toBeGreaterThan(3);
    }
    expect(sources.flatMap((source) => source.imports).length).toBeGreaterThan(200);
  });

  test("src imports itself, hono and valibot", () => {
    expect(wrongImports((_, to) => to.startsWith("src/") || /^(hono|valibot)(\/|$)/.test(to), "src")).toEqual(
      [],
    );
  });

  test("an adapter imports src, its own folder, what adapters share, and its own client", () => {
    const allowed = (source: Source, to: string) => {
      const own = source.path.split("/")[1] as string;
      if (to.startsWith("src/")) return true;
      // Files right in adapters/ are an adapter's entry, or shared by all.
      const shared = to.startsWith("adapters/") && to.split("/").length === 2;
      return (
        shared ||
        to.startsWith(`adapters/${own.replace(/\.ts$/, "")}/`) ||
        (CLIENTS[own] ?? []).some((one) => one.test(to))
      );
    };
    expect(wrongImports(allowed, "adapters")).toEqual([]);
  });

  test("runtimes import anything but tests and examples, save the example that is the default worker", () => {
    expect(wrongImports((_, to) => !to.startsWith("tests/"), "runtimes")).toEqual([]);
  });

  test("nothing but tests imports tests", () => {
    const wrong = ["src", "adapters", "runtimes", "examples"].flatMap((one) =>
      wrongImports((_, to) => !to.startsWith("tests/"), one),
    );
    expect(wrong).toEqual([]);
  });

  test("no files import each other in a circle, not even for types", () => {
    const imports = new Map(
      sources
        .filter(({ path }) => room(path) !== "tests")
        .map((source) => [source.path, source.imports.map((one) => target(source, one))]),
    );
    /** Files of which all that they lead to was looked through. */
    const done = new Set<string>();
    const circles: string[] = [];
    const follow = (path: string, way: readonly string[]): void => {
      const from = way.indexOf(path);
      if (from >= 0) circles.push([...way.slice(from), path].join(" > "));
      if (from >= 0 || done.has(path)) return;
      for (const next of imports.get(path) ?? []) follow(next, [...way, path]);
      done.add(path);
    };
    for (const path of imports.keys()) follow(path, []);
    expect(circles).toEqual([]);
  });

  test("packages that are imported are dependencies, and dependencies are imported", () => {
    const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const declared = new Set([
      ...Object.keys(manifest.dependencies),
      ...Object.keys(manifest.devDependencies),
    ]);
    const used = new Set<string>();
    for (const source of sources) {
      for (const one of source.imports) {
        if (one.startsWith(".") || /^(bun|node|cloudflare):/.test(one) || one === "bun" || one === "eddy")
          continue;
        used.add(
          one
            .split("/")
            .slice(0, one.startsWith("@") ? 2 : 1)
            .join("/"),
        );
      }
    }
    expect([...used].filter((one) => !declared.has(one))).toEqual([]);
    expect(Object.keys(manifest.dependencies).filter((one: string) => !used.has(one))).toEqual([]);
  });
});

describe("the core reads no ambient platform", () => {
  const BANNED = [
    /\bDate\.now\b/,
    /\bnew Date\(\s*\)/,
    /\bperformance\b/,
    /\b(setTimeout|setInterval|setImmediate)\b/,
    /\bMath\.random\b/,
    /\bcrypto\.(randomUUID|getRandomValues)\b/,
    /\bAbortSignal\.timeout\b/,
    /(?<![.#\w])fetch\(/,
    /\bnew WebSocket\b/,
    /(?<![.\w])process\./,
    /\b(Deno|Bun)\./,
    /\bconsole\./,
    /\bglobalThis\b/,
    /\bimport\.meta\b/,
  ];

  test("the bans find what they ban", () => {
    const offences = [
      "Date.now()",
      "new Date()",
      "performance.now()",
      "setTimeout(f)",
      "Math.random()",
      "crypto.randomUUID()",
      "AbortSignal.timeout(1)",
      "await fetch(u)",
      "new WebSocket(u)",
      "process.env",
      "Bun.env",
      "console.log()",
      "globalThis.x",
      "import.meta.dir",
    ];
    expect(offences.filter((code) => !BANNED.some((one) => one.test(code)))).toEqual([]);
    expect(
      ["platform.fetch(u)", "job.fetch(u)", "this.#fetch(u)", "beforeFetch()"].filter((code) =>
        BANNED.some((one) => one.test(code)),
      ),
    ).toEqual([]);
  });

  test("src has none of it", () => {
    const offences = sources
      .filter((source) => room(source.path) === "src")
      .flatMap((source) =>
        BANNED.filter((one) => one.test(source.code)).map((one) => `${source.path}: ${one}`),
      );
    // A method that is called fetch is declared, not called.
    expect(
      offences.filter(
        (one) =>
          !(
            one.startsWith("src/active_job.ts") ||
            one.startsWith("src/job.ts") ||
            one.startsWith("src/platform.ts")
          ) || !one.includes("fetch"),
      ),
    ).toEqual([]);
  });
});

describe("tidiness", () => {
  test("no file is too large for one sitting", () => {
    const MOST_LINES = 700;
    const large = sources
      .map((source) => ({ path: source.path, lines: source.text.split("\n").length }))
      .filter(({ lines }) => lines > MOST_LINES);
    expect(large).toEqual([]);
  });

  test("tests run: none is skipped, focused, left to do or retried", () => {
    const pattern = /\b(describe|test|it)\.(skip|only|todo|failing|if|skipIf|todoIf)\b|\bretry:\s*[1-9]/;
    expect(
      sources
        .filter((source) => room(source.path) === "tests" && pattern.test(source.code))
        .map(({ path }) => path),
    ).toEqual([]);
  });

  test("nothing is left over or out of place", () => {
    const words = [
      ["TO", "DO"],
      ["FIX", "ME"],
      ["XX", "X"],
      ["/wo", "rk/"],
      ["/ro", "ot/"],
      ["@ts-", "ignore"],
      ["@ts-", "nocheck"],
    ].map((parts) => parts.join(""));
    const found = sources.flatMap(({ path, text }) =>
      words.filter((word) => text.includes(word)).map((word) => `${path}: ${word}`),
    );
    expect(found).toEqual([]);
  });

  test("git keeps sources, texts and settings alone, no logs, databases or other leavings", () => {
    // A copy without git keeps nothing.
    const git = () => Bun.spawnSync(["git", "ls-files"], { cwd: ROOT, stderr: "ignore" }).stdout.toString();
    const kept = (Bun.which("git") === null ? "" : git()).split("\n").filter((path) => path !== "");
    const known = /\.(ts|json|md|toml)$|(^|\/)(\.npmrc|\.gitignore|LICENSE)$|^\.ci\/run$/;
    expect(kept.filter((path) => !known.test(path))).toEqual([]);
  });

  test("every file is used: imported by another, an entry, or a test", () => {
    const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const imported = new Set(sources.flatMap((source) => source.imports.map((one) => target(source, one))));
    const mentions = [
      JSON.stringify(manifest),
      ...["deno.json", "wrangler.toml", "README.md"].map((name) => {
        try {
          return readFileSync(join(ROOT, name), "utf8");
        } catch {
          return "";
        }
      }),
      ...sources.map(({ text }) => text),
    ];
    const dead = sources
      .filter(({ path }) => !path.endsWith(".test.ts") && !imported.has(path))
      // Loaded by its name: a script, a page of the README, a process that a test starts.
      .filter(
        ({ path }) =>
          !mentions.some(
            (text) => text.includes(path) || text.includes(path.split("/").slice(-1)[0] as string),
          ),
      );
    expect(dead.map(({ path }) => path)).toEqual([]);
  });

  test("every module explains itself before its first export", () => {
    const silent = sources.filter(({ path, text }) => {
      const first = text.search(/^export /m);
      return room(path) !== "tests" && first >= 0 && !text.slice(0, first).includes("/**");
    });
    expect(silent.map(({ path }) => path)).toEqual([]);
  });
});
