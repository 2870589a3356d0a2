/** `worker` and `drain` as real processes on SQLite: stopping, exit codes, HTTP beside the worker. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { join, resolve } from "node:path";
import { type HoldingServer, holdingServer } from "./holding_server.ts";
import { eddy, RunningCommand, scratch, startEddy } from "./process.ts";

// Each test starts processes.
setDefaultTimeout(30_000);

const ROOT = resolve(import.meta.dir, "../..");
const HELD = join(ROOT, "tests/cli/held_worker.ts");
const SECRET = "hush-5d1e";

/** A folder whose queue `tasks` holds jobs 0 to `count - 1`, and a server that decides how long each takes. */
async function backlog(count: number) {
  const folder = await scratch();
  const input = Array.from({ length: count }, (_, n) => `{"n":${n}}`).join("\n");
  const sent = await eddy(["enqueue", "tasks"], { cwd: folder.path, input });
  expect(sent.code).toBe(0);
  const server = holdingServer();
  return {
    folder,
    server,
    env: { EDDY_TEST_URL: server.url },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

async function sizes(cwd: string): Promise<Record<string, unknown>> {
  const { out } = await eddy(["stats", "tasks", "--json"], { cwd });
  return JSON.parse(out)[0];
}

/** The attempts charged to the ready jobs. */
async function attempts(cwd: string): Promise<number[]> {
  const { out } = await eddy(["peek", "tasks", "--limit", "1000", "--json"], { cwd });
  return out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line).attempts);
}

/** Starts the worker and waits until both its slots run. */
async function underLoad(
  cwd: string,
  server: HoldingServer,
  env: Record<string, string>,
): Promise<RunningCommand> {
  const worker = startEddy(["worker", HELD], { cwd, env });
  await worker.outputs(/ INFO {2}Ready/);
  await server.came(2);
  return worker;
}

describe("stopping under load", () => {
  test.each(["SIGTERM", "SIGINT"] as const)(
    "%s: nothing starts, what runs finishes, the rest goes back uncharged",
    async (signal) => {
      await using load = await backlog(20);
      await using worker = await underLoad(load.folder.path, load.server, load.env);
      worker.signal(signal);
      await worker.outputs(
        new RegExp(
          `Stopping: running jobs may finish, nothing starts running=2 graceMs=10000 reason=${signal}`,
        ),
      );
      load.server.answer();
      const { code, out, err } = await worker.exited();
      expect([code, err]).toEqual([0, ""]);
      expect(out).toMatch(/Stopped\n$/);
      expect(load.server.asked).toHaveLength(2);
      expect(await sizes(load.folder.path)).toMatchObject({ ready: 18, held: 0, delayed: 0, dead: 0 });
      expect(await attempts(load.folder.path)).toEqual(Array.from({ length: 18 }, () => 0));
    },
  );

  test("jobs that ignore their signal do not hold it up beyond the grace", async () => {
    await using load = await backlog(5);
    await using worker = await underLoad(load.folder.path, load.server, {
      ...load.env,
      EDDY_TEST_GRACE_MS: "50",
    });
    worker.signal("SIGTERM");
    const { code, out } = await worker.exited();
    expect(code).toBe(0);
    expect(out).toContain("A handler ignored its signal and was left behind");
    expect(load.server.asked).toHaveLength(2);
    expect(await sizes(load.folder.path)).toMatchObject({ dead: 0 });
  });

  test.each([
    ["SIGTERM", 143],
    ["SIGINT", 130],
  ] as const)("a second %s ends it at once", async (signal, expected) => {
    await using load = await backlog(5);
    await using worker = await underLoad(load.folder.path, load.server, load.env);
    worker.signal(signal);
    await worker.outputs(/Stopping/);
    // The first copies count as the first signal, so it is sent until it is heeded.
    const again = setInterval(() => worker.signal(signal), 20);
    const { code, out, err } = await worker.exited().finally(() => clearInterval(again));
    expect(code).toBe(expected);
    expect(err).toBe("Ended at once: 2 jobs stay held until their lease ends, and then run again\n");
    expect(out).not.toContain("Stopped");
  });

  test("a copy of the first signal, as launchers send it, changes nothing", async () => {
    await using load = await backlog(5);
    await using worker = await underLoad(load.folder.path, load.server, load.env);
    worker.signal("SIGINT");
    worker.signal("SIGINT");
    await worker.outputs(/Stopping/);
    load.server.answer();
    const { code, out } = await worker.exited();
    expect(code).toBe(0);
    expect(out).toMatch(/Stopped\n$/);
  });

  test.each(["npm", "bun"])(
    "a signal to `%s run` alone, or to it and all below it, stops as gracefully",
    async (launcher) => {
      for (const whole of [false, true]) {
        await using load = await backlog(5);
        const args = [launcher, "run", "worker", ...(launcher === "npm" ? ["--"] : []), HELD];
        const env = { ...load.env, EDDY_BROKER: `sqlite:${load.folder.file("eddy.sqlite")}` };
        // `setsid` makes it the first of a process group, as a shell does for a command in a terminal.
        await using run = new RunningCommand(["setsid", ...args], { cwd: ROOT, env });
        await run.outputs(/Ready/);
        await load.server.came(2);
        if (whole) process.kill(-run.pid, "SIGINT");
        else run.signal("SIGTERM");
        await run.outputs(/Stopping/);
        load.server.answer();
        const { out } = await run.exited();
        expect(out).toMatch(/Stopped\n$/);
        expect(load.server.asked).toHaveLength(2);
      }
    },
  );
});

describe("drain", () => {
  test("ends with 0 when the queues were emptied", async () => {
    await using load = await backlog(5);
    load.server.answer();
    const { code, out } = await eddy(["drain", HELD, "--json"], { cwd: load.folder.path, env: load.env });
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ jobs: 5, acked: 5, stopped: "empty", left: 0, requests: 0 });
    expect([...load.server.asked].sort()).toEqual(["0", "1", "2", "3", "4"]);
  });

  test("ends with 3 when a budget ended it with work left", async () => {
    await using load = await backlog(5);
    load.server.answer();
    const { code, out } = await eddy(["drain", HELD, "--max-jobs", "3"], {
      cwd: load.folder.path,
      env: load.env,
    });
    expect(code).toBe(3);
    expect(out).toMatch(
      /^Drained 3 deliveries \(3 acked\) in .+; ended because its jobs are used up; left: 2 \(2 ready\)\n$/,
    );
    const rest = await eddy(["drain", HELD, "--max-jobs", "2"], { cwd: load.folder.path, env: load.env });
    expect(rest.code).toBe(0);
  });

  test("ends with 3 when it was told to stop with work left", async () => {
    await using load = await backlog(5);
    await using drain = startEddy(["drain", HELD, "--json"], { cwd: load.folder.path, env: load.env });
    await load.server.came(2);
    drain.signal("SIGTERM");
    await drain.complains(/"message":"Stopping: /);
    load.server.answer();
    const { code, out, err } = await drain.exited();
    expect(code).toBe(3);
    expect(JSON.parse(err.split("\n", 1)[0] as string)).toMatchObject({ running: 2, graceMs: 10_000 });
    expect(JSON.parse(out)).toMatchObject({ acked: 2, stopped: "signal", left: 3 });
    expect(await attempts(load.folder.path)).toEqual([0, 0, 0]);
  });

  test("a second signal ends it at once", async () => {
    await using load = await backlog(5);
    await using drain = startEddy(["drain", HELD], { cwd: load.folder.path, env: load.env });
    await load.server.came(2);
    drain.signal("SIGTERM");
    drain.signal("SIGINT");
    const { code, err } = await drain.exited();
    expect(code).toBe(130);
    expect(err).toMatch(/^Ended at once: [2-5] jobs stay held until their lease ends, and then run again$/m);
  });

  test("failed jobs are tried again and then become dead letters with their reason, in the log too", async () => {
    await using load = await backlog(1);
    load.server.answer(503);
    const { code, out, err } = await eddy(["drain", HELD, "--json"], {
      cwd: load.folder.path,
      env: load.env,
    });
    const second = await eddy(["drain", HELD, "--json"], { cwd: load.folder.path, env: load.env });
    expect([code, second.code]).toEqual([0, 0]);
    const reports = [JSON.parse(out), JSON.parse(second.out)];
    expect(reports.reduce((sum, one) => sum + one.retried, 0)).toBe(1);
    expect(reports.reduce((sum, one) => sum + one.dead, 0)).toBe(1);
    const lines = (err + second.err)
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: "warn",
        queue: "tasks",
        attempt: 1,
        error: expect.stringContaining("answered 503"),
      }),
    );
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: "error",
        queue: "tasks",
        attempt: 2,
        error: expect.stringContaining("answered 503"),
      }),
    );
  });
});

describe("HTTP beside the worker", () => {
  async function serving(args: string[], env: Record<string, string> = {}) {
    const server = holdingServer();
    const worker = startEddy(["worker", HELD, "--broker", "memory:", ...args], {
      env: { EDDY_TEST_URL: server.url, ...env },
    });
    const [url] = await worker.outputs(/http:\/\/(127\.0\.0\.1|0\.0\.0\.0):\d+/);
    return {
      server,
      worker,
      url,
      async [Symbol.asyncDispose]() {
        await worker[Symbol.asyncDispose]();
        await server[Symbol.asyncDispose]();
      },
    };
  }

  test("takes jobs in, tells health and numbers, and ends with the worker", async () => {
    await using up = await serving(["--http", "0"]);
    expect(up.url).toStartWith("http://127.0.0.1:");
    const sent = await fetch(`${up.url}/v1/queues/tasks/jobs`, { method: "POST", body: '{"n":7}' });
    expect(sent.status).toBe(201);
    await up.server.came(1);
    expect(up.server.asked).toEqual(["7"]);
    expect(await (await fetch(`${up.url}/metrics`)).text()).toContain(
      'eddy_started_total{queue="tasks"} 1\n',
    );
    expect((await fetch(`${up.url}/health`)).status).toBe(200);
    up.worker.signal("SIGTERM");
    await up.worker.outputs(/Stopping/);
    // It tells that it stops for as long as it lasts, so that nobody sends it more.
    expect((await fetch(`${up.url}/health`)).status).toBe(503);
    up.server.answer();
    expect((await up.worker.exited()).code).toBe(0);
    expect(await fetch(up.url).catch(() => "gone")).toBe("gone");
  });

  test("a running drain ends with it", async () => {
    await using up = await serving(["--http", "0"]);
    const enqueue = async (...numbers: number[]) => {
      for (const n of numbers) {
        await fetch(`${up.url}/v1/queues/tasks/jobs`, { method: "POST", body: `{"n":${n}}` });
      }
    };
    // The worker's two slots are taken first, so that the rest is left for the drain.
    await enqueue(1, 2);
    await up.server.came(2);
    await enqueue(3, 4, 5, 6);
    const drained = fetch(`${up.url}/v1/drain`, { method: "POST" });
    await up.server.came(4);
    up.worker.signal("SIGTERM");
    await up.worker.outputs(/Stopping/);
    up.server.answer();
    const report = await (await drained).json();
    expect(report).toMatchObject({ acked: 2, stopped: "signal" });
    expect((await up.worker.exited()).code).toBe(0);
    expect(up.server.asked).toHaveLength(4);
  });

  test("with a token lets only its bearer in, and never tells it", async () => {
    await using up = await serving(["--http", "0.0.0.0:0", "--json"], { EDDY_HTTP_TOKEN: SECRET });
    const url = up.url.replace("0.0.0.0", "127.0.0.1");
    const ask = async (headers: Record<string, string>) =>
      (await fetch(`${url}/v1/queues`, { headers })).status;
    expect(await ask({})).toBe(401);
    expect(await ask({ Authorization: `Bearer ${SECRET}x` })).toBe(401);
    expect(await ask({ Authorization: `Bearer ${SECRET}` })).toBe(200);
    const body = await fetch(`${url}/v1/queues/tasks/jobs`, {
      method: "POST",
      body: "hush",
      headers: { Authorization: `Bearer ${SECRET}` },
    });
    expect([body.status, await body.text()]).toEqual([422, expect.not.stringContaining("hush")]);
    up.worker.signal("SIGTERM");
    const { out, err } = await up.worker.exited();
    expect(out + err).not.toContain(SECRET);
    expect(out + err).not.toContain("hush");
    for (const line of out.trimEnd().split("\n")) JSON.parse(line);
  });

  test("refuses bodies above the limit while they are sent", async () => {
    await using up = await serving(["--http", "0", "--max-body-bytes", "100"]);
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(1_000)),
    });
    const answer = await fetch(`${up.url}/v1/queues/tasks/jobs`, { method: "POST", body: endless });
    expect([answer.status, await answer.json()]).toMatchObject([413, { code: "too-large" }]);
  });

  test("a page of another origin is refused", async () => {
    await using up = await serving(["--http", "0"]);
    const init = {
      method: "POST",
      body: '{"states":["ready"]}',
      headers: { Origin: "https://evil.example" },
    };
    expect((await fetch(`${up.url}/v1/queues/tasks/clear`, init)).status).toBe(403);
    const rebound = await fetch(`${up.url}/v1/queues`, { headers: { Host: "evil.example" } });
    expect(rebound.status).toBe(403);
  });

  test("a port that is taken ends the worker with a sentence, even where another worker has it", async () => {
    await using up = await serving(["--http", "0"]);
    await using stranger = holdingServer();
    for (const { port } of [new URL(up.url), new URL(stranger.url)]) {
      const { code, out, err } = await eddy(["worker", HELD, "--broker", "memory:", "--http", port], {
        env: { EDDY_TEST_URL: up.server.url },
      });
      // Found before any job could be claimed.
      expect(out).not.toContain("Ready");
      expect([code, err]).toEqual([
        1,
        `Cannot listen on 127.0.0.1:${port}: the address is taken or not allowed; choose another port or host\n`,
      ]);
    }
  });
});

test("without a file the worker of the folder runs", async () => {
  await using folder = await scratch();
  await Bun.write(folder.file("worker.ts"), `export { default } from "${HELD}";`);
  await using own = startEddy(["worker", "--broker", "memory:"], { cwd: folder.path });
  await own.outputs(/Starting worker=worker\.ts broker=memory: queues=tasks/);
  await own.outputs(/Ready/);
  own.signal("SIGINT");
  expect((await own.exited()).code).toBe(0);
});

test("the demo passes on its temporary file and in memory, and leaves nothing behind", async () => {
  await using folder = await scratch();
  for (const args of [[], ["--broker", "memory:"]]) {
    const { code, out, err } = await eddy(["demo", ...args], {
      cwd: folder.path,
      env: { TMPDIR: folder.path },
    });
    expect([code, err]).toEqual([0, ""]);
    expect(out.match(/^ {3}ok: /gm)).toHaveLength(5);
    expect(out).toMatch(/PASS: 5 checks\n$/);
    expect([...new Bun.Glob("**").scanSync({ cwd: folder.path, onlyFiles: false })]).toEqual([]);
  }
}, 40_000);

test("a demo that is stopped leaves nothing behind either", async () => {
  await using folder = await scratch();
  await using demo = startEddy(["demo"], { cwd: folder.path, env: { TMPDIR: folder.path } });
  await demo.outputs(/^b\) /m);
  demo.signal("SIGINT");
  const { code, err } = await demo.exited();
  expect([code, err]).toEqual([1, "Cannot finish the demo: SIGINT came\n"]);
  expect([...new Bun.Glob("**").scanSync({ cwd: folder.path, onlyFiles: false })]).toEqual([]);
});
