/** Calling the commands rightly and wrongly. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import manifest from "../../package.json";
import { eddy, RunningCommand, scratch, startEddy } from "./process.ts";

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
const EXAMPLE = join(ROOT, "examples/worker.ts");

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
    const exits = /\nExit code:\n((?: {2}.+\n)+)\n/.exec(out)?.[1] ?? "";
    for (const line of ["0", "1", "2        it was called wrongly", command === "drain" ? "3" : ""]) {
      const [code, ...text] = line.split(/ {2,}/);
      if (code) expect(exits).toMatch(new RegExp(`^ {2}${code} +${text.join("")}`, "m"));
    }
    expect(out).toContain("--help");
    expect(out).toContain("Usage: npx eddy ");
    for (const line of out.split("\n")) expect(line.length).toBeLessThanOrEqual(110);
  });

  test("-h asks for it too, unless it stands behind --", async () => {
    expect(await eddy(["-h"])).toEqual(await eddy(["--help"]));
    expect(await eddy(["enqueue", "q", "-h"])).toEqual(await eddy(["enqueue", "--help"]));
    await using folder = await scratch();
    const sent = await eddy(["enqueue", "q", "--codec", "text", "--", "-h"], { cwd: folder.path });
    expect([sent.code, sent.out]).toEqual([0, expect.stringContaining("1 accepted")]);
  });

  test("so does `help` before the command's name", async () => {
    expect(await eddy(["help", "stats"])).toEqual(await eddy(["stats", "--help"]));
    expect(await eddy(["help"])).toEqual(await eddy(["--help"]));
    expect((await eddy(["help", "hush"])).code).toBe(2);
  });

  test("--version prints the package's", async () => {
    expect(await eddy(["--version"])).toEqual({ code: 0, out: `${manifest.version}\n`, err: "" });
  });

  test("is where package.json's scripts lead", async () => {
    const scripts = manifest.scripts as Record<string, string>;
    for (const command of ["worker", "enqueue", "drain", "stats", "demo"]) {
      expect(scripts[command]).toBe(`${scripts.eddy} ${command}`);
    }
    for (const args of [["stats"], ["eddy", "redrive"], ["redis-http"]]) {
      // This test itself may have been started by npm.
      const env = { npm_config_user_agent: `bun/${Bun.version}` };
      await using run = new RunningCommand([process.execPath, "run", ...args, "--help"], { cwd: ROOT, env });
      const { code, out } = await run.ended();
      expect(code).toBe(0);
      expect(out).toContain(`Usage: bun run ${args.join(" ")}`);
    }
    await using npm = new RunningCommand(["npm", "run", "-s", "redis-http", "--", "--help"], {
      cwd: ROOT,
    });
    expect((await npm.ended()).out).toContain("Usage: npm run redis-http -- [options]\n");
  });
});

test("package.json's scripts put no shell between a signal and the program", () => {
  for (const [name, script] of Object.entries(manifest.scripts)) {
    if (/\bbun \S+\.ts\b/.test(script)) expect(`${name}: ${script}`).toStartWith(`${name}: exec bun `);
  }
});

describe("wrong calls end with 2, a sentence and where to look", () => {
  const wrong: [string[], string][] = [
    [["enqueue", "emails", "{}", "--hush"], "--hush is unknown"],
    [["enqueue", "emails", "{}", "-x"], "-x is unknown"],
    [
      ["enqueue", "emails", "-573"],
      "a negative number reads as a flag; write -- before it, behind the flags",
    ],
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
    [["enqueue", "emails", "--id", "x"], "name the lines of standard input by --ids"],
    [["enqueue", "emails", "1", "--ids", "x"], "Cannot use --ids: it names lines of standard input"],
    [["enqueue", "emails", "--ids", "x", "--id", "y"], "Cannot use --ids with --id"],
    [["enqueue", "emails", "--ids", "a b"], "Cannot use --ids: it does not fit"],
    [["enqueue", "emails", "--ids", "x".repeat(184)], "use 1 to 183 printable"],
    [["enqueue", "emails", "1", "--id", "a b"], "Cannot use --id"],
    [
      ["enqueue", "emails", "1", "--header", "no-value"],
      "Cannot use --header: it has no =; write NAME=VALUE",
    ],
    [
      ["enqueue", "emails", "1", "--header", "x:y=1"],
      "Cannot use --header: its name has a : in it; a name is",
    ],
    [
      ["enqueue", "emails", "1", "--header", "x=ü"],
      "Cannot use --header: its value does not fit; give up to",
    ],
    [["enqueue", "emails", "1", "--header", "a=b", "--header", "A=c"], "--header: a is given twice"],
    [["enqueue", "emails", "1", "--broker", "memory:"], "Cannot enqueue into memory:"],
    [["clear", "emails"], "--state is missing"],
    [["clear", "emails", "--state", "held"], "--state does not fit; give one of ready, delayed, dead"],
    [["dead", "emails", "more"], "there are too many"],
    [["worker", "nowhere.ts"], "nowhere.ts is not there; name its file\n"],
    [["worker", "."], "the worker: . is a folder; name its file\n"],
    [["worker", ""], "the worker: the name of its file is empty; name its file\n"],
    [["worker", "/dev/null"], "/dev/null is no file that could be loaded; name its file\n"],
    [["worker", EXAMPLE, "--max-body-bytes", "9"], "--max-body-bytes: nothing is taken in without --http"],
    [["stats", "emails", "--broker", ""], "--broker is empty"],
    [["enqueue", "emails", "1", "--delay-ms="], "--delay-ms is empty"],
    [["redrive", "emails", "a", ""], "an ID is empty; name a dead letter"],
    [["worker", join(ROOT, "examples")], `examples is a folder; name its file, as in ${EXAMPLE}\n`],
    [["drain"], "there is no ./worker.ts; name its file\n"],
    [["drain", EXAMPLE, "emails"], "there are too many; name one FILE"],
    [["demo", "fast"], "the demo takes flags alone"],
    [["stats", "--any-queue"], "Cannot use --any-queue: no QUEUE is named; name those to show"],
    [["stats"], "there is no ./worker.ts; name its file with --worker\n"],
    [["stats", "--worker", "nowhere.ts"], "nowhere.ts is not there; name its file with --worker\n"],
    [["dead", "emails", "--worker", "."], ". is a folder; name its file with --worker\n"],
    [
      ["worker", EXAMPLE, "--http", "0.0.0.0:0", "--broker", "memory:"],
      "set EDDY_HTTP_TOKEN or bind to 127.0.0.1",
    ],
    [
      ["worker", EXAMPLE, "--http", "x:y", "--broker", "memory:"],
      "the address is malformed; write PORT or HOST:PORT",
    ],
    [["redrive", "emails", "a", "--limit", "1"], "Cannot use --limit: the IDs say which dead letters"],
  ];
  test.each(wrong)("%p", async (args, text) => {
    await using folder = await scratch();
    const { code, out, err } = await eddy(args, { cwd: folder.path });
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(text);
    expect(err).toMatch(/^Cannot .+\nSee `npx eddy .+ --help`\.\n$/);
    expect(err).not.toContain("-5");
  });

  test("a negative number behind -- is a body", async () => {
    await using folder = await scratch();
    const { code, out } = await eddy(["enqueue", "q", "--id", "x", "--", "-573"], { cwd: folder.path });
    expect([code, out]).toEqual([0, "q: 1 accepted, 0 rejected (id x)\n"]);
    const peek = await eddy(["peek", "q", "--bodies", "--json"], { cwd: folder.path });
    expect(JSON.parse(peek.out).body).toBe("-573");
  });

  test("a file that is not there, for all commands but those that make it", async () => {
    await using folder = await scratch();
    const broker = ["--broker", "sqlite:nowhere.sqlite"];
    const calls = [["stats"], ["peek"], ["dead"], ["redrive"], ["resume"], ["clear", "--state", "dead"]];
    for (const [command, ...more] of calls as [string, ...string[]][]) {
      const { code, out, err } = await eddy([command, "emails", ...more, ...broker], { cwd: folder.path });
      expect([code, out]).toEqual([2, ""]);
      expect(err).toMatch(
        /^Cannot find the queue: sqlite:nowhere\.sqlite is a file that is not there; name another with --broker, or enqueue a job first\nSee /,
      );
      expect(existsSync(folder.file("nowhere.sqlite"))).toBe(false);
    }
    const paused = await eddy(["pause", "emails", ...broker], { cwd: folder.path });
    expect(paused).toEqual({ code: 0, out: "emails is paused\n", err: "" });
    // Named twice, shown once.
    const stats = await eddy(["stats", "emails", "emails", "--json", ...broker], { cwd: folder.path });
    expect(JSON.parse(stats.out)).toMatchObject([{ queue: "emails", ready: 0, paused: true }]);
    expect(JSON.parse(stats.out)).toHaveLength(1);
  });

  test("an unknown command", async () => {
    const { code, err } = await eddy(["hush", "--help"]);
    expect(code).toBe(2);
    expect(err).toContain("use one of worker, enqueue");
    expect(err).toEndWith("\nSee `npx eddy --help`.\n");
    expect(err).not.toContain("hush");
    const flag = await eddy(["--broker", "hush", "stats"]);
    expect([flag.code, flag.out]).toEqual([2, ""]);
    expect(flag.err).toStartWith("Cannot run the command: a flag stands before its name; use one of worker");
    expect(flag.err).not.toContain("hush");
  });

  test("an unknown queue of a worker, naming those it has", async () => {
    await using folder = await scratch();
    for (const args of [
      ["enqueue", "other", "{}"],
      ["dead", "other"],
      ["stats", "other"],
    ]) {
      const broker = ["--broker", "sqlite:q.sqlite"];
      await eddy(["enqueue", "emails", '{"to":"a@b.de","subject":""}', ...broker], { cwd: folder.path });
      const { code, err } = await eddy([...args, "--worker", EXAMPLE, ...broker], { cwd: folder.path });
      expect(code).toBe(2);
      expect(err).toContain("the worker has none of that name; use one of emails");
    }
    const drain = await eddy(["drain", EXAMPLE, "--queue", "other"], { cwd: folder.path });
    expect([drain.code, drain.out]).toEqual([2, ""]);
  });
});

describe("brokers that cannot be used end with a sentence without their secrets", () => {
  const cases: [string, string, Record<string, string>][] = [
    [
      "https://user:hush@example.com",
      "a URL with credentials in it; put the token into EDDY_BROKER_TOKEN",
      {},
    ],
    ["https://", "a malformed URL", { EDDY_BROKER_TOKEN: "hush" }],
    ["wss://user:hush@example.com", "a URL with credentials in it; put them into EDDY_NATS_USER", {}],
    ["redis://:hush@127.0.0.1:6379", "start `npm run redis-http` in Eddy's checkout in front of it", {}],
    ["nats://hush@127.0.0.1", "name its WebSocket listener", {}],
    ["hush", "of no known kind", {}],
    ["sqlite:", "no file", {}],
    ["sqlite::memory:", "no path of a file; write sqlite:FILE, or memory:", {}],
    ["sqlite:file:hush?mode=memory", "no path of a file; write sqlite:FILE, or memory:", {}],
  ];
  test.each(cases)("%s: 2 as a flag, 1 as a variable, which is named", async (broker, text, env) => {
    const flag = await eddy(["stats", "emails", "--broker", broker], { env });
    const variable = await eddy(["stats", "emails"], { env: { ...env, EDDY_BROKER: broker } });
    expect([flag.code, variable.code]).toEqual([2, 1]);
    expect(flag.err).toMatch(/^Cannot use the broker: its name is .+\nSee `npx eddy stats --help`\.\n$/);
    expect(variable.err).toMatch(/^Cannot use the broker: EDDY_BROKER is .+\n$/);
    for (const { out, err } of [flag, variable]) {
      expect(out).toBe("");
      expect(err).toContain(text);
      expect(err).not.toContain("hush");
    }
  });

  test("Upstash's variable is named too", async () => {
    const env = { UPSTASH_REDIS_REST_URL: "https://user:hush@up.example", UPSTASH_REDIS_REST_TOKEN: "hush" };
    const { code, err } = await eddy(["stats", "emails"], { env });
    expect(code).toBe(1);
    expect(err).toStartWith(
      "Cannot use the broker: UPSTASH_REDIS_REST_URL is a URL with credentials in it; ",
    );
    expect(err).not.toContain("hush@");
  });

  test("a good URL without its token is the environment's fault, whoever named it", async () => {
    const NATS_HINT = ", or write ws:// or wss:// if NATS is meant";
    const calls: [string[], Record<string, string>, string][] = [
      [["--broker", "https://example.com"], {}, `EDDY_BROKER_TOKEN${NATS_HINT}`],
      [["--broker", "http://127.0.0.1:8080"], {}, `EDDY_BROKER_TOKEN${NATS_HINT}`],
      [[], { EDDY_BROKER: "https://example.com" }, `EDDY_BROKER_TOKEN${NATS_HINT}`],
      [[], { UPSTASH_REDIS_REST_URL: "https://example.com" }, "UPSTASH_REDIS_REST_TOKEN"],
    ];
    for (const [args, env, token] of calls) {
      const { code, err } = await eddy(["stats", "emails", ...args], { env });
      expect([code, err]).toEqual([1, expect.stringContaining(`a URL without a token; set ${token}\n`)]);
    }
  });
});

describe("workers that cannot be loaded", () => {
  test("a broker's URL in the place of FILE is not printed", async () => {
    for (const url of ["https://user:hush@host/?token=hush", "redis://:hush@host", "wss:user:hush@host"]) {
      for (const [named, ...args] of [
        ["FILE", "worker", url],
        ["FILE", "drain", url],
        ["--worker", "stats", "q", "--worker", url],
      ] as [string, ...string[]][]) {
        const { code, out, err } = await eddy(args);
        expect([code, out]).toEqual([2, ""]);
        expect(err).toContain(
          `${named} looks like a broker's URL; name the worker's file, and the broker with --broker`,
        );
        expect(err).not.toContain("hush");
      }
    }
  });

  test.each([
    ["export default 5;", "is no worker"],
    ["export const x = 1;", "is no worker"],
    ["throw new Error('boom');", "failed with Error: boom"],
    [
      "throw new Proxy({}, { getPrototypeOf() { throw 1; } });",
      "failed with something that cannot be read; mend it",
    ],
    [
      "throw Object.assign(new TypeError(), { message: Symbol('hm') });",
      "failed with something that cannot be read",
    ],
    ["throw undefined;", "failed with undefined; mend it\n"],
    [
      "throw new RangeError('Cannot do it: it is odd; do it otherwise');",
      "failed with RangeError: Cannot do it: it is odd; do it otherwise\n",
    ],
    ["export default { get kind() { throw new Error('boom'); } };", "failed with Error: boom"],
    ["\n\nconst x = ;", "worker.ts:3:11; mend it"],
    [
      "throw new AggregateError([new RangeError('one'), new Error('two'), new Error('three')], 'hush');",
      "failed with RangeError: one (and 2 more errors); mend it",
    ],
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

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)(
    "one that awaits what never comes is named after a while, and %s ends it",
    async (signal, code) => {
      await using folder = await scratch();
      await writeFile(folder.file("worker.ts"), "await new Promise(() => {}); export default 1;");
      await using drain = startEddy(["drain", "--broker", "memory:"], { cwd: folder.path });
      await drain.complains(/Still loading worker\.ts after 5 s: it awaits something/);
      drain.signal(signal);
      const ended = await drain.exited();
      expect([ended.code, ended.out]).toEqual([code, ""]);
      expect(ended.err).toEndWith(`Stopped: ${signal} came while worker.ts was still being loaded\n`);
    },
  );
});
