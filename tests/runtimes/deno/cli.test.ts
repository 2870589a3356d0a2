/** The commands as `deno task` runs them, with the permissions that deno.json gives each. What they do is the same code as on Bun, tested in tests/cli. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { nkeys } from "nats.ws";
import { holdingServer } from "../../cli/holding_server.ts";
import { type Ended, RunningCommand } from "../../cli/process.ts";
import { startRedisOverHttp } from "../../support/gateway.ts";
import { startNats } from "../../support/nats_server.ts";
import { DENO, ROOT } from "./process.ts";

// Each test starts processes.
setDefaultTimeout(30_000);

const HELD = "tests/cli/held_worker.ts";
/** The tasks may write below the project's folder alone. */
const folder = join(ROOT, ".eddy", `deno-cli-${process.pid}`);
let files = 0;
let demos: readonly RunningCommand[];

beforeAll(() => {
  mkdirSync(folder, { recursive: true });
  // They take seconds and are looked at last.
  demos = [task(["demo"], { env: { TMPDIR: "" } }), task(["demo"], { env: { TMPDIR: "/var/tmp" } })];
});
afterAll(async () => {
  for (const demo of demos) await demo[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** A broker of its own. */
function fresh(): string {
  files += 1;
  return `sqlite:${relative(ROOT, join(folder, `${files}.sqlite`))}`;
}

interface TaskOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
}

function task(args: readonly string[], options: TaskOptions = {}): RunningCommand {
  return new RunningCommand([DENO, "task", "--quiet", ...args], {
    cwd: ROOT,
    ...options,
    env: { NO_COLOR: "1", ...options.env },
  });
}

async function run(args: readonly string[], options: TaskOptions = {}): Promise<Ended> {
  await using command = task(args, options);
  return await command.ended();
}

/**
 * The worker of tests/cli reads the address it asks from the environment, which no task permits: so it is started as the task
 * does, with that permission more, as a user would.
 */
function heldWorker(command: "worker" | "drain", broker: string, url: string, more: readonly string[] = []) {
  const { tasks } = JSON.parse(readFileSync(join(ROOT, "deno.json"), "utf8"));
  const words: string[] = tasks[command].command.split(" ");
  const own = "EDDY_TEST_URL,EDDY_TEST_GRACE_MS";
  const line = words.map((word) => (word.startsWith("--allow-env=") ? `${word},${own}` : word));
  return new RunningCommand([...line, HELD, "--broker", broker, ...more], {
    cwd: ROOT,
    env: { NO_COLOR: "1", EDDY_TEST_URL: url },
  });
}

async function backlog(broker: string, count: number): Promise<void> {
  const input = Array.from({ length: count }, (_, n) => `{"n":${n}}`).join("\n");
  expect((await run(["enqueue", "tasks", "--broker", broker], { input })).code).toBe(0);
}

async function sizes(broker: string): Promise<Record<string, unknown>> {
  return JSON.parse((await run(["stats", "tasks", "--json", "--broker", broker])).out)[0];
}

describe("a queue's life", () => {
  test("jobs from arguments and from NDJSON, sizes, drains that end with 0 and 3", async () => {
    const broker = fresh();
    const flags = ["--broker", broker];
    const one = await run(["enqueue", "emails", '{"to":"ada@example.com","subject":"é 😀"}', ...flags]);
    expect([one.code, one.out]).toEqual([
      0,
      expect.stringMatching(/^emails: 1 accepted, 0 rejected \(id \S+\)\n$/),
    ]);
    const input = `${JSON.stringify({ to: "b@example.com", subject: "1" })}\nnonsense\n${JSON.stringify({ to: "c@example.com", subject: "2" })}\n`;
    const lines = await run(["enqueue", "emails", ...flags], { input });
    expect([lines.code, lines.out]).toEqual([1, "emails: 2 accepted, 1 rejected\n"]);
    expect(lines.err).toStartWith("line 2: ");
    expect(JSON.parse((await run(["stats", "--json", ...flags])).out)).toEqual([
      { queue: "emails", ready: 3, delayed: 0, held: 0, dead: 0, paused: false },
    ]);
    const some = await run(["drain", "--max-jobs", "1", ...flags]);
    expect([some.code, some.out]).toEqual([3, expect.stringContaining("left: 2")]);
    const rest = await run(["drain", "--json", ...flags]);
    expect(rest.code).toBe(0);
    expect(JSON.parse(rest.out)).toMatchObject({ jobs: 2, acked: 2, stopped: "empty", left: 0 });
    const peeked = await run(["eddy", "peek", "emails", ...flags]);
    expect([peeked.code, peeked.out]).toEqual([0, "No job is ready.\n"]);
  });

  test("a long input on standard input arrives whole", async () => {
    const broker = fresh();
    const input = Array.from({ length: 5_000 }, (_, n) => JSON.stringify({ n, text: "é".repeat(40) })).join(
      "\n",
    );
    const { code, out } = await run(["enqueue", "tasks", "--broker", broker], { input });
    expect([code, out]).toEqual([0, "tasks: 5000 accepted, 0 rejected\n"]);
    expect(await sizes(broker)).toMatchObject({ ready: 5_000 });
  });

  test("Bun and Deno work on one file at the same time", async () => {
    const broker = fresh();
    const bun = (args: string[], input?: string) =>
      new RunningCommand(
        [process.execPath, join(ROOT, "runtimes/bun/main.ts"), ...args, "--broker", broker],
        {
          cwd: ROOT,
          ...(input === undefined ? {} : { input }),
        },
      );
    const lines = (prefix: string) =>
      Array.from({ length: 300 }, (_, n) =>
        JSON.stringify({ to: `${prefix}${n}@example.com`, subject: "x" }),
      ).join("\n");
    await using fromBun = bun(["enqueue", "emails"], lines("b"));
    const fromDeno = await run(["enqueue", "emails", "--broker", broker], { input: lines("d") });
    expect([(await fromBun.ended()).code, fromDeno.code]).toEqual([0, 0]);
    await using drain = bun(["drain", "examples/worker.ts", "--json"]);
    const other = await run(["drain", "--json", "--broker", broker]);
    const reports = [JSON.parse((await drain.ended()).out), JSON.parse(other.out)];
    expect(reports.reduce((sum, { acked }) => sum + acked, 0)).toBe(600);
    expect(JSON.parse((await run(["stats", "emails", "--json", "--broker", broker])).out)[0]).toMatchObject({
      ready: 0,
      held: 0,
      dead: 0,
    });
  });
});

describe("brokers that are servers", () => {
  async function life(broker: string, env: Readonly<Record<string, string>>): Promise<void> {
    const flags = ["--broker", broker];
    const input = '{"to":"ada@example.com","subject":"x"}\n'.repeat(30);
    const enqueued = await run(["enqueue", "emails", ...flags], { input, env });
    expect([enqueued.code, enqueued.err]).toEqual([0, ""]);
    const stats = await run(["stats", "emails", "--json", ...flags], { env });
    expect(JSON.parse(stats.out)).toMatchObject([{ ready: 30, held: 0, dead: 0 }]);
    const drained = await run(["drain", "--json", ...flags], { env });
    expect(JSON.parse(drained.out)).toMatchObject({ jobs: 30, acked: 30, stopped: "empty", left: 0 });
    await using worker = task(["worker", ...flags], { env });
    await worker.outputs(/ INFO {2}Ready/);
    await run(["enqueue", "emails", '{"to":"late@example.com","subject":"x"}', ...flags], { env });
    await worker.outputs(/E-mail sent/);
    worker.signal("SIGTERM");
    expect((await worker.exited()).code).toBe(0);
  }

  test("Redis over HTTP", async () => {
    const redis = await startRedisOverHttp({ persist: true });
    try {
      await life(redis.gateway.url, { EDDY_BROKER_TOKEN: redis.gateway.token });
    } finally {
      await redis.stop();
    }
  });

  test("NATS over WebSocket, with a user's login and with an nkey", async () => {
    const user = nkeys.createUser();
    const users = `{ user: "ada", password: "s3cret" }, { nkey: "${user.getPublicKey()}" }`;
    const nats = await startNats({ config: `authorization { users: [ ${users} ] }` });
    try {
      await life(nats.url, { EDDY_NATS_USER: "ada", EDDY_NATS_PASSWORD: "s3cret" });
      const env = { EDDY_BROKER_NKEY_SEED: new TextDecoder().decode(user.getSeed()) };
      const { code, out } = await run(["stats", "emails", "--json", "--broker", nats.url], { env });
      expect([code, JSON.parse(out)]).toEqual([0, [expect.objectContaining({ queue: "emails", ready: 0 })]]);
    } finally {
      await nats.stop();
    }
  });
});

describe("stopping under load", () => {
  test("SIGTERM to the task alone: nothing starts, what runs finishes, the rest goes back uncharged", async () => {
    const broker = fresh();
    await backlog(broker, 20);
    await using server = holdingServer();
    await using worker = heldWorker("worker", broker, server.url);
    await worker.outputs(/ INFO {2}Ready/);
    await server.came(2);
    worker.signal("SIGTERM");
    await worker.outputs(/Stopping: .+ reason=SIGTERM/);
    server.answer();
    const { code, out, err } = await worker.exited();
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(/Stopped\n$/);
    expect(server.asked).toHaveLength(2);
    expect(await sizes(broker)).toMatchObject({ ready: 18, held: 0, delayed: 0, dead: 0 });
    const { out: peeked } = await run([
      "eddy",
      "peek",
      "tasks",
      "--limit",
      "100",
      "--json",
      "--broker",
      broker,
    ]);
    expect(peeked.match(/"attempts":0/g)).toHaveLength(18);
  });

  test("through `deno task` as well", async () => {
    await using worker = task(["worker", "--broker", fresh()]);
    await worker.outputs(/ INFO {2}Ready/);
    worker.signal("SIGTERM");
    const { code, out } = await worker.exited();
    expect([code, out]).toEqual([0, expect.stringMatching(/reason=SIGTERM\n.*Stopped\n$/)]);
  });

  test.each([
    ["SIGTERM", 143],
    ["SIGINT", 130],
  ] as const)("a second %s ends it at once", async (signal, expected) => {
    const broker = fresh();
    await backlog(broker, 3);
    await using server = holdingServer();
    await using worker = heldWorker("worker", broker, server.url);
    await server.came(2);
    worker.signal(signal);
    await worker.outputs(/Stopping/);
    // The first copies count as the first signal, so it is sent until it is heeded.
    const again = setInterval(() => worker.signal(signal), 20);
    const { code, out } = await worker.exited().finally(() => clearInterval(again));
    expect(code).toBe(expected);
    expect(out).not.toContain("Stopped");
  });

  test("a drain that is told to stop ends with 3", async () => {
    const broker = fresh();
    await backlog(broker, 5);
    await using server = holdingServer();
    await using drain = heldWorker("drain", broker, server.url, ["--json"]);
    await server.came(2);
    drain.signal("SIGTERM");
    // It says nothing until its report; that it heard the signal shows in what it gave back.
    const deadline = performance.now() + 20_000;
    while ((await sizes(broker)).ready !== 3 && performance.now() < deadline);
    server.answer();
    const { code, out } = await drain.exited();
    expect(code).toBe(3);
    expect(JSON.parse(out)).toMatchObject({ acked: 2, stopped: "signal", left: 3 });
  });
});

describe("HTTP beside the worker", () => {
  test("takes jobs in, tells health and numbers, drains, and ends with the worker", async () => {
    await using server = holdingServer();
    await using worker = heldWorker("worker", "memory:", server.url, ["--http", "0"]);
    const [url] = await worker.outputs(/http:\/\/127\.0\.0\.1:\d+/);
    const sent = await fetch(`${url}/v1/queues/tasks/jobs`, { method: "POST", body: '{"n":7}' });
    expect(sent.status).toBe(201);
    await server.came(1);
    expect(await (await fetch(`${url}/metrics`)).text()).toContain('eddy_started_total{queue="tasks"} 1\n');
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect((await fetch(`${url}/v1/nothing`)).status).toBe(404);
    worker.signal("SIGTERM");
    await worker.outputs(/Stopping/);
    expect((await fetch(`${url}/health`)).status).toBe(503);
    server.answer();
    expect((await worker.exited()).code).toBe(0);
    expect(await fetch(url).catch(() => "gone")).toBe("gone");
  });

  test("a caller who hangs up ends the drain that it asked for", async () => {
    await using server = holdingServer();
    await using worker = heldWorker("worker", "memory:", server.url, ["--http", "0"]);
    const [url] = await worker.outputs(/http:\/\/127\.0\.0\.1:\d+/);
    const enqueue = async (numbers: readonly number[]) => {
      for (const n of numbers) {
        await fetch(`${url}/v1/queues/tasks/jobs`, { method: "POST", body: `{"n":${n}}` });
      }
    };
    // The worker's two slots are taken first, so that the rest is left for the drain.
    await enqueue([1, 2]);
    await server.came(2);
    await enqueue([3, 4, 5, 6]);
    const caller = new AbortController();
    const drained = fetch(`${url}/v1/drain`, { method: "POST", signal: caller.signal }).catch(() => "gone");
    await server.came(4);
    caller.abort();
    expect(await drained).toBe("gone");
    // What it had not started comes back, though what runs is still unanswered.
    const deadline = performance.now() + 20_000;
    let ready: number | undefined;
    while (ready !== 2 && performance.now() < deadline) {
      const told = await (await fetch(`${url}/v1/queues`)).text();
      ready = Number(/"ready":(\d+)/.exec(told)?.[1]);
    }
    expect(ready).toBe(2);
    server.answer();
  });

  test("a request that hangs is cut when the worker has stopped", async () => {
    await using worker = task(["worker", "--broker", "memory:", "--http", "0"]);
    const [url] = await worker.outputs(/http:\/\/127\.0\.0\.1:\d+/);
    const { hostname, port } = new URL(url);
    const cut = Promise.withResolvers<void>();
    const socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: { data: () => {}, close: () => cut.resolve(), error: () => cut.resolve() },
    });
    // The rest of its body never comes.
    socket.write(
      `POST /v1/queues/emails/jobs HTTP/1.1\r\nhost: ${hostname}:${port}\r\ncontent-length: 100\r\n\r\n{`,
    );
    await fetch(`${url}/health`);
    worker.signal("SIGTERM");
    const { code, out } = await worker.exited();
    expect([code, out]).toEqual([0, expect.stringMatching(/Stopped\n/)]);
    await cut.promise;
  });

  test("a port that is taken ends it with a sentence", async () => {
    await using other = holdingServer();
    const port = new URL(other.url).port;
    const { code, err } = await run(["worker", "--broker", "memory:", "--http", port]);
    expect([code, err]).toEqual([
      1,
      `Cannot listen on 127.0.0.1:${port}: the address is taken or not allowed; choose another port or host\n`,
    ]);
  });
});

describe("words and permissions", () => {
  test("help and mistakes name `npx deno task`", async () => {
    const help = await run(["eddy", "--help"]);
    expect([help.code, help.out]).toEqual([
      0,
      expect.stringContaining("Usage: npx deno task eddy COMMAND [flags]"),
    ]);
    expect(help.out).not.toContain("bun");
    const wrong = await run(["stats", "--hush"]);
    expect([wrong.code, wrong.err]).toEqual([
      2,
      "Cannot read the arguments: --hush is unknown\nSee `npx deno task stats --help`.\n",
    ]);
  });

  test("a file outside the project takes a permission that no task has, and is asked of nobody", async () => {
    const { code, err } = await run(["stats", "emails", "--broker", "sqlite:/var/eddy-nowhere.sqlite"]);
    expect(code).toBe(1);
    expect(err).toBe(
      'Cannot go on without a permission: Requires read access to "/var/eddy-nowhere.sqlite" (--allow-read)\n' +
        "To permit it, add it to --allow-read of the task in deno.json, or start `npx deno run FLAGS runtimes/deno/main.ts stats` with flags of your own.\n",
    );
  });

  test("a file that may be read alone is told in a sentence", async () => {
    const file = join(folder, "read_only.sqlite");
    writeFileSync(file, "");
    const { code, err } = await ((): Promise<Ended> => {
      const command = new RunningCommand(
        [
          DENO,
          "run",
          "--no-check",
          "--no-prompt",
          "--allow-read=.",
          "--allow-env",
          "runtimes/deno/main.ts",
        ].concat(["stats", "emails", "--broker", `sqlite:${file}`]),
        { cwd: ROOT },
      );
      return command.ended();
    })();
    expect([code, err]).toEqual([
      1,
      `Cannot open ${file}: Deno does not let this program read and write it; allow both with --allow-read and --allow-write\nTo permit it, add it to --allow-read and --allow-write of the task in deno.json, or start \`npx deno run FLAGS runtimes/deno/main.ts stats\` with flags of your own.\n`,
    ]);
  });

  test("a worker that reads a variable it may not is told which", async () => {
    const file = join(folder, "curious.ts");
    writeFileSync(file, "export default (env) => { throw new Error(String(env.EDDY_CURIOUS)); };");
    const { code, err } = await run(["worker", relative(ROOT, file), "--broker", "memory:"]);
    expect(code).toBe(1);
    expect(err).toContain('Requires env access to "EDDY_CURIOUS"');
    expect(err).toContain("\nTo permit it, add it to --allow-env of the task in deno.json, or start ");
  });
});

test.each([0, 1])("the demo passes, wherever temporary files go (%d)", async (which) => {
  const { code, out, err } = await (demos[which] as RunningCommand).exited();
  expect([code, err]).toEqual([0, ""]);
  expect(out).toMatch(/PASS: 5 checks\n$/);
});
