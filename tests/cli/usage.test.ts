/** Calling the commands rightly and wrongly. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import manifest from "../../package.json";
import { eddy, RunningCommand, scratch } from "./process.ts";

// Each test starts processes.
setDefaultTimeout(30_000);

const COMMANDS = [
  "worker",
  "enqueue",
  "drain",
  "stats",
  "peek",
  "dead",
  "redrive",
  "pause",
  "resume",
  "clear",
  "demo",
];
const ROOT = resolve(import.meta.dir, "../..");

describe("help", () => {
  test("lists every command", async () => {
    const { code, out, err } = await eddy(["--help"]);
    expect([code, err]).toEqual([0, ""]);
    for (const command of COMMANDS) expect(out).toMatch(new RegExp(`^  ${command}\\b`, "m"));
    const bare = await eddy([]);
    expect([bare.code, bare.out]).toEqual([2, ""]);
    expect(bare.err).toBe(out);
  });

  test.each(COMMANDS)("%s --help names every flag with its default, wherever it stands", async (command) => {
    const { code, out, err } = await eddy([command, "x", "--help"]);
    expect([code, err]).toEqual([0, ""]);
    const module = (await import(join(ROOT, `runtimes/cli/commands/${command}.ts`))) as {
      default: { flags: Record<string, { kind: string; default?: unknown; unit?: string }> };
    };
    for (const [name, flag] of Object.entries(module.default.flags)) {
      expect(out).toMatch(new RegExp(`^  --${name}\\b`, "m"));
      if (flag.default !== undefined) expect(out.replace(/\s+/g, " ")).toContain(`default ${flag.default}`);
      if (flag.unit !== undefined) expect(out.replace(/\s+/g, " ")).toContain(`in ${flag.unit}`);
    }
    expect(out).toContain("--help");
    expect(out).toContain("Usage: bun run ");
    for (const line of out.split("\n")) expect(line.length).toBeLessThanOrEqual(110);
  });

  test("is where package.json's scripts lead", async () => {
    const scripts = manifest.scripts as Record<string, string>;
    for (const command of ["worker", "enqueue", "drain", "stats", "demo"]) {
      expect(scripts[command]).toBe(`${scripts.eddy} ${command}`);
    }
    for (const args of [["stats"], ["eddy", "redrive"], ["redis-http"]]) {
      await using run = new RunningCommand([process.execPath, "run", ...args, "--help"], { cwd: ROOT });
      const { code, out } = await run.ended();
      expect(code).toBe(0);
      expect(out).toContain(`Usage: bun run ${args.join(" ")}`);
    }
  });
});

describe("wrong calls end with 2, a sentence and where to look", () => {
  const wrong: [string[], string][] = [
    [["enqueue", "emails", "{}", "--hush"], "--hush is unknown"],
    [["enqueue", "emails", "{}", "-x"], "-x is unknown"],
    [["stats", "--constructor"], "--constructor is unknown"],
    [["drain", "--max-ms", "0"], "--max-ms does not fit; give a whole number from 1 on"],
    [["drain", "--max-ms", "-5"], "--max-ms does not fit"],
    [["drain", "--max-jobs=1e3"], "--max-jobs does not fit"],
    [["drain", "--max-jobs"], "--max-jobs needs a value"],
    [["drain", "--max-jobs", "--json"], "--max-jobs needs a value"],
    [["drain", "--max-jobs=1", "--max-jobs=2"], "--max-jobs is given twice"],
    [["drain", "--json=yes"], "--json takes no value"],
    [
      ["enqueue", "emails", "{}", "--priority", "urgent"],
      "--priority does not fit; give one of high, normal, low",
    ],
    [["enqueue"], "QUEUE is missing"],
    [["enqueue", "e.mails", "{}"], "its name is malformed"],
    [["enqueue", "emails", "1", "2", "--id", "x"], "one id names one job"],
    [["enqueue", "emails", "1", "--id", "a b"], "Cannot use --id"],
    [["enqueue", "emails", "1", "--header", "no-value"], "Cannot use --header"],
    [["enqueue", "emails", "1", "--broker", "memory:"], "Cannot enqueue into memory:"],
    [["clear", "emails"], "--state is missing"],
    [["clear", "emails", "--state", "held"], "--state does not fit; give one of ready, delayed, dead"],
    [["dead", "emails", "more"], "there are too many"],
    [["worker", "nowhere.ts"], "nowhere.ts is not there"],
    [["worker", "--http", "0.0.0.0:0", "--broker", "memory:"], "set EDDY_HTTP_TOKEN or bind to 127.0.0.1"],
    [["stats", "emails", "--broker", "sqlite:nowhere.sqlite"], "there is no such file"],
  ];
  test.each(wrong)("%p", async (args, text) => {
    await using folder = await scratch();
    const { code, out, err } = await eddy(args, { cwd: folder.path });
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(text);
    expect(err).toMatch(/^Cannot .+\nSee `bun run .+ --help`\.\n$/);
  });

  test("an unknown command", async () => {
    const { code, err } = await eddy(["hush", "--help"]);
    expect(code).toBe(2);
    expect(err).toContain("use one of worker, enqueue");
    expect(err).not.toContain("hush");
  });

  test("an unknown queue of a worker, naming those it has", async () => {
    await using folder = await scratch();
    const example = join(ROOT, "examples/worker.ts");
    for (const args of [
      ["enqueue", "other", "{}"],
      ["dead", "other"],
      ["stats", "other"],
    ]) {
      const broker = ["--broker", "sqlite:q.sqlite"];
      await eddy(["enqueue", "emails", '{"to":"a@b.de","subject":""}', ...broker], { cwd: folder.path });
      const { code, err } = await eddy([...args, "--worker", example, ...broker], { cwd: folder.path });
      expect(code).toBe(2);
      expect(err).toContain("the worker has none of that name; use one of emails");
    }
    const drain = await eddy(["drain", example, "--queue", "other"], { cwd: folder.path });
    expect([drain.code, drain.out]).toEqual([2, ""]);
  });
});

describe("brokers that cannot be used end with 1 and a sentence without their secrets", () => {
  const cases: [string, string, Record<string, string>][] = [
    [
      "https://user:hush@example.com",
      "a URL with credentials in it; put the token into EDDY_BROKER_TOKEN",
      {},
    ],
    ["https://example.com", "a URL without a token; set EDDY_BROKER_TOKEN", {}],
    ["https://", "a malformed URL", { EDDY_BROKER_TOKEN: "hush" }],
    ["redis://:hush@127.0.0.1:6379", "start `bun run redis-http` in front of it", {}],
    ["hush", "of no known kind", {}],
    ["sqlite:", "no file", {}],
  ];
  test.each(cases)("%s", async (broker, text, env) => {
    for (const how of ["flag", "variable"]) {
      const { code, out, err } = await eddy(
        ["stats", "emails", ...(how === "flag" ? ["--broker", broker] : [])],
        {
          env: how === "flag" ? env : { ...env, EDDY_BROKER: broker },
        },
      );
      expect([code, out]).toEqual([1, ""]);
      expect(err).toStartWith("Cannot use the broker: ");
      expect(err).toContain(text);
      expect(err).not.toContain("hush");
    }
  });
});

describe("workers that cannot be loaded", () => {
  test("a broker's URL in the place of FILE is not printed", async () => {
    for (const url of ["https://user:hush@host/?token=hush", "redis://:hush@host", "wss:user:hush@host"]) {
      for (const args of [
        ["worker", url],
        ["drain", url],
        ["stats", "q", "--worker", url],
      ]) {
        const { code, out, err } = await eddy(args);
        expect([code, out]).toEqual([2, ""]);
        expect(err).toContain(
          "FILE looks like a broker's URL; name the worker's file, and the broker with --broker",
        );
        expect(err).not.toContain("hush");
      }
    }
  });

  test.each([
    ["export default 5;", "is no worker"],
    ["export const x = 1;", "is no worker"],
    ["throw new Error('boom');", "failed with Error: boom"],
    ["export default (env) => { throw new TypeError('Cannot go: ' + env.EDDY_X); };", "Cannot go: here"],
  ])("%s", async (source, text) => {
    await using folder = await scratch();
    await writeFile(folder.file("worker.ts"), source);
    const { code, err } = await eddy(["drain", "--broker", "memory:"], {
      cwd: folder.path,
      env: { EDDY_X: "here" },
    });
    expect(code).toBe(1);
    expect(err).toContain("Cannot load the worker: ");
    expect(err).toContain(text);
  });
});
