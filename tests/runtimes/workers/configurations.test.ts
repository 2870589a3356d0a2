/** The configurations of the Workers that are deployed as they are. */
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

const ROOT = resolve(import.meta.dir, "../../..");
const FOLDERS = readdirSync(join(ROOT, "examples")).filter((name) => name.startsWith("workers_"));

/** What wrangler reads, with its paths resolved. */
function configurationOf(path: string): Record<string, unknown> {
  const text = readFileSync(join(ROOT, path), "utf8");
  const read = Bun.TOML.parse(text) as Record<string, unknown>;
  return { ...read, main: resolve(ROOT, dirname(path), String(read.main)) };
}

test("each example for Workers is a folder of its own", () => {
  expect(FOLDERS.sort()).toEqual(["workers_nats", "workers_object", "workers_redis"]);
  for (const folder of FOLDERS) {
    const { main } = configurationOf(`examples/${folder}/wrangler.toml`);
    expect(main).toBe(join(ROOT, "examples", folder, "worker.ts"));
    expect(existsSync(String(main))).toBe(true);
  }
});

test("the repository's own is that of the Worker with Redis", () => {
  expect(configurationOf("wrangler.toml")).toEqual(configurationOf("examples/workers_redis/wrangler.toml"));
});

test("git and npm are told to leave secrets and wrangler's own files alone", () => {
  const ignored = readFileSync(join(ROOT, ".gitignore"), "utf8").split("\n");
  expect(ignored).toContain(".dev.vars*");
  expect(ignored).toContain(".wrangler/");
  // What npm packs of a folder that is named there, .gitignore does not say.
  const { files } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { files: string[] };
  expect(files).toContain("!**/.dev.vars*");
  expect(files).toContain("!**/.wrangler");
});
