/** What wrangler would upload: that it builds, how large it is, and that it carries nothing it does not use. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { gzipSync } from "node:zlib";

const ROOT = resolve(import.meta.dir, "../../..");

let scratch: string;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "eddy-bundles-"));
});
afterAll(() => {
  rmSync(scratch, { recursive: true, force: true });
});

/** A configuration as the examples have it, for a Worker of the tests. */
function configFor(entry: string): string {
  const file = join(mkdtempSync(join(scratch, "config-")), "wrangler.toml");
  const lines = [
    'name = "eddy"',
    `main = ${JSON.stringify(join(ROOT, entry))}`,
    'compatibility_date = "2026-04-01"',
    "minify = true",
    "keep_names = false",
  ];
  writeFileSync(file, `${lines.join("\n")}\n`);
  return file;
}

interface Bundle {
  readonly bytes: number;
  /** What Cloudflare counts. */
  readonly compressedBytes: number;
  /** The packages and the project's own rooms that have code in it. */
  readonly rooms: readonly string[];
}

/** What esbuild tells of a build, as far as it is of use here. */
interface Metafile {
  readonly outputs: Record<string, { readonly inputs: Record<string, { readonly bytesInOutput: number }> }>;
}

async function build(config: string): Promise<Bundle> {
  const folder = mkdtempSync(join(scratch, "bundle-"));
  const metafile = join(folder, "meta.json");
  const wrangler = Bun.spawn(
    [
      ...[join(ROOT, "node_modules/.bin/wrangler"), "deploy", "--dry-run"],
      ...["--config", config, "--outdir", folder, "--metafile", metafile],
    ],
    {
      cwd: ROOT,
      env: { ...Bun.env, WRANGLER_SEND_METRICS: "false", CI: "true", NO_COLOR: "1" },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  const [out, err] = await Promise.all([
    new Response(wrangler.stdout).text(),
    new Response(wrangler.stderr).text(),
  ]);
  expect(await wrangler.exited, out + err).toBe(0);
  const scripts = readdirSync(folder).filter((name) => name.endsWith(".js"));
  expect(scripts).toHaveLength(1);
  const script = readFileSync(join(folder, scripts[0]!));
  const { outputs } = JSON.parse(readFileSync(metafile, "utf8")) as Metafile;
  const used = Object.values(outputs)
    .flatMap(({ inputs }) => Object.entries(inputs))
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  return {
    bytes: script.byteLength,
    compressedBytes: gzipSync(script).byteLength,
    // Paths are told as seen from the configuration.
    rooms: [...new Set(used.map(([path]) => roomOf(resolve(ROOT, dirname(config), path))))].sort(),
  };
}

/** Of `…/node_modules/hono/dist/hono.js` it is `hono`, of `…/adapters/redis/mod.ts` `adapters/redis`, of `…/src/mod.ts` `src`. */
function roomOf(path: string): string {
  const [, inPackage] = path.split("node_modules/");
  if (inPackage !== undefined) return inPackage.split("/")[0] as string;
  return dirname(relative(ROOT, path)).split("/").slice(0, 2).join("/");
}

interface Expected {
  readonly name: string;
  readonly config: () => string;
  /** Most bytes after gzip. */
  readonly most: number;
  readonly rooms: readonly string[];
}

const CORE = ["adapters", "runtimes", "runtimes/workers", "src"];
const HTTP = ["hono", "src/http", "valibot"];

const EXPECTED: readonly Expected[] = [
  {
    name: "a Worker with Redis, its HTTP app and a consumer",
    config: () => "examples/workers_redis/wrangler.toml",
    most: 60_000,
    rooms: [...CORE, ...HTTP, "adapters/redis", "examples", "examples/workers_redis"],
  },
  {
    name: "a Worker with Redis that serves no HTTP",
    config: () => configFor("tests/runtimes/workers/cron_only_worker.ts"),
    most: 40_000,
    rooms: [...CORE, "adapters/redis", "tests/runtimes"],
  },
  {
    name: "a Worker with objects alone",
    config: () => "examples/workers_object/wrangler.toml",
    most: 55_000,
    rooms: [...CORE, ...HTTP, "adapters/sqlite", "examples", "examples/workers_object"],
  },
  {
    name: "a Worker with NATS",
    config: () => "examples/workers_nats/wrangler.toml",
    most: 130_000,
    rooms: [...CORE, ...HTTP, "adapters/nats", "nats.ws", "examples", "examples/workers_nats"],
  },
];

describe("wrangler deploy --dry-run", () => {
  for (const { name, config, most, rooms } of EXPECTED) {
    test(`builds ${name}, small, of nothing but what it uses`, async () => {
      const bundle = await build(config());
      const kilobytes = (bytes: number) => `${(bytes / 1000).toFixed(1)} kB`;
      console.log(`${name}: ${kilobytes(bundle.bytes)}, ${kilobytes(bundle.compressedBytes)} after gzip`);
      expect(bundle.rooms).toEqual([...rooms].sort());
      expect(bundle.compressedBytes).toBeLessThan(most);
    }, 120_000);
  }
});
