/** Standard streams that fail or stand still, and what is told of faults. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { closeSync, existsSync, openSync } from "node:fs";
import { join, resolve } from "node:path";
import { DENO } from "../runtimes/deno/process.ts";
import { eddy, RunningCommand, scratch, startEddy } from "./process.ts";

// Each test starts processes.
setDefaultTimeout(30_000);

const ROOT = resolve(import.meta.dir, "../..");
const MAIN = join(ROOT, "runtimes/bun/main.ts");
const EDDY = `'${process.execPath}' '${MAIN}'`;

/** Runs a line of shell to its end. */
async function shell(line: string, cwd: string) {
  await using run = new RunningCommand(["sh", "-c", line], { cwd });
  return await run.ended();
}

test("a stop ends a worker whose full output nobody reads", async () => {
  await using folder = await scratch();
  const done = folder.file("done");
  await Bun.write(
    folder.file("worker.ts"),
    `import { defineWorker, queue } from "${join(ROOT, "src/mod.ts")}";
     export default defineWorker({ queues: [queue("q").handle(async (job) => {
       for (let n = 0; n < 1_000; n += 1) job.log.info("x".repeat(1_000));
       await Bun.write(${JSON.stringify(done)}, "");
     })] });`,
  );
  await eddy(["enqueue", "q", "1"], { cwd: folder.path });
  const pipe = folder.file("pipe");
  expect((await shell(`mkfifo ${pipe}`, folder.path)).code).toBe(0);
  // Open for reading too, so that it can be opened at all, and never read: it holds some 64 KiB.
  const unread = openSync(pipe, "r+");
  const worker = Bun.spawn([process.execPath, MAIN, "worker"], {
    cwd: folder.path,
    stdin: "ignore",
    stdout: unread,
    stderr: "ignore",
  });
  try {
    const deadline = performance.now() + 15_000;
    while (!existsSync(done) && performance.now() < deadline) await Bun.sleep(20);
    expect(existsSync(done)).toBe(true);
    worker.kill("SIGTERM");
    const late = setTimeout(() => worker.kill("SIGKILL"), 10_000);
    await worker.exited;
    clearTimeout(late);
    expect([worker.exitCode, worker.signalCode]).toEqual([0, null]);
  } finally {
    worker.kill("SIGKILL");
    closeSync(unread);
  }
});

describe("output that cannot be written ends with 1 and a sentence", () => {
  test.each(["stats q", "peek q", "enqueue q 2", "--help"])("%s", async (call) => {
    await using folder = await scratch();
    await eddy(["enqueue", "q", "1"], { cwd: folder.path });
    const { code, out, err } = await shell(`${EDDY} ${call} > /dev/full`, folder.path);
    expect([code, out, err]).toEqual([
      1,
      "",
      "Cannot write the output: the system answered ENOSPC; make room or name another place\n",
    ]);
  });

  test("a command that was called wrongly keeps its code", async () => {
    await using folder = await scratch();
    expect((await shell(`${EDDY} hush 2> /dev/full`, folder.path)).code).toBe(2);
  });

  test("long before the end, too", async () => {
    await using folder = await scratch();
    const line = `${EDDY} enqueue q 2> /dev/full`;
    await using run = new RunningCommand(["sh", "-c", line], { cwd: folder.path });
    run.write("hush\n");
    // Taken in after the first was complained of.
    run.write("2\n");
    const deadline = performance.now() + 15_000;
    for (let ready = 0; ready < 1; ) {
      const { code, out } = await eddy(["stats", "q", "--json"], { cwd: folder.path });
      ready = code === 0 ? JSON.parse(out)[0].ready : 0;
      if (performance.now() > deadline) throw new Error("The line was not taken in while the input is open");
    }
    const out = expect.stringMatching(/^q: 1 accepted, 1 rejected \(id \S+\)\n$/);
    expect(await run.ended()).toEqual({ code: 1, out, err: "" });
  });

  test("on Deno, whose writes to files throw", async () => {
    await using folder = await scratch();
    const line = `'${DENO}' run -A --no-lock --config '${ROOT}/deno.json' '${ROOT}/runtimes/deno/main.ts' --help`;
    const { code, err } = await shell(`NO_COLOR=1 ${line} > /dev/full`, folder.path);
    expect([code, err]).toEqual([
      1,
      "Cannot write the output: the system answered ENOSPC; make room or name another place\n",
    ]);
  });
});

test("input that cannot be read ends with 1, a sentence and the sums", async () => {
  await using folder = await scratch();
  expect(await shell(`${EDDY} enqueue q < .`, folder.path)).toEqual({
    code: 1,
    out: "q: 0 accepted, 0 rejected\n",
    err: "Cannot read standard input: the system answered EISDIR; give a file or a pipe\n",
  });
});

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)(
  "%s before the end of the input: what was read is told, half a line is no job",
  async (signal, code) => {
    await using folder = await scratch();
    await using run = startEddy(["enqueue", "q"], { cwd: folder.path });
    run.write("1\n2\n\n34");
    const deadline = performance.now() + 15_000;
    for (let ready = 0; ready < 2 && performance.now() < deadline; ) {
      const { code, out } = await eddy(["stats", "q", "--json"], { cwd: folder.path });
      ready = code === 0 ? JSON.parse(out)[0].ready : 0;
    }
    run.signal(signal);
    expect(await run.exited()).toEqual({
      code,
      out: "q: 2 accepted, 0 rejected\n",
      err: `Stopped: ${signal} came before the end of standard input\nNot sent: line 3 and all after it.\n`,
    });
    expect(JSON.parse((await eddy(["stats", "q", "--json"], { cwd: folder.path })).out)[0].ready).toBe(2);
  },
);

describe("what is told of a fault", () => {
  async function failing(thrown: string) {
    await using folder = await scratch();
    // A definition that fails once it is used, deep in the program, as a fault would.
    await Bun.write(
      folder.file("worker.ts"),
      `import { readFileSync } from "node:fs";
       class Odd extends Error {}
       export default { kind: "eddy-worker", get queues() { ${thrown} } };`,
    );
    const { code, err } = await eddy(["stats", "--broker", "memory:"], { cwd: folder.path });
    expect(code).toBe(1);
    expect(err).not.toContain("hush");
    return err;
  }

  test("its class and its places, not its text", async () => {
    for (const [made, name] of [
      ["new Odd('hush\\n    at hush:1:1')", "Odd"],
      ["new TypeError('hush')", "TypeError"],
      ["Object.assign(new Error('hush'), { name: 'Named' })", "Named"],
      ["Object.assign(new Error('hush'), { code: 'hush', path: 'hush' })", "Error"],
    ]) {
      expect(await failing(`throw ${made};`)).toMatch(
        new RegExp(
          `^Failed: ${name}, a fault of the program or of the worker's file\n {4}at /.+worker\\.ts:3:\\d+\n {4}at /.+stats\\.ts:\\d+:\\d+\n`,
        ),
      );
    }
  });

  test("its text where it is the program's own", async () => {
    expect(await failing("throw new RangeError('Cannot do it: it is odd; mend it');")).toBe(
      "Cannot do it: it is odd; mend it\n",
    );
  });

  test("code, call and path of what the system refused", async () => {
    expect(await failing("readFileSync('/no/such/file');")).toMatch(
      /^Failed: ENOENT: open \/no\/such\/file\n {4}at .+:\d+:\d+\n/,
    );
    expect(await failing("readFileSync('/');")).toMatch(/^Failed: EISDIR: read\b.*\n {4}at .+:\d+:\d+\n/);
  });
});
