/**
 * A worker's code that ends the process in the middle: nothing is settled and nobody is told, so it must not look like a success. And one whose faults
 * come about outside of any job: they must cost no job.
 */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { join, resolve } from "node:path";
import { DENO } from "../runtimes/deno/process.ts";
import { eddy, RunningCommand, scratch } from "./process.ts";

// Each test starts processes.
setDefaultTimeout(30_000);

const ROOT = resolve(import.meta.dir, "../..");
const LINE =
  /^Cannot finish: the worker's code ended the process; what it held comes again when its lease is over: throw an error instead of calling exit\(\)$/gm;

/** How the commands are started on each runtime. */
const RUNTIMES: Readonly<Record<string, readonly string[]>> = {
  Bun: [process.execPath, join(ROOT, "runtimes/bun/main.ts")],
  Deno: [
    ...[DENO, "run", "-A", "--no-check", "--no-lock", "--config", join(ROOT, "deno.json")],
    join(ROOT, "runtimes/deno/main.ts"),
  ],
};

function moduleOf(handler: string, top = ""): string {
  return `import { defineWorker, queue } from "${join(ROOT, "src/mod.ts")}";
    ${top}
    export default defineWorker({ queues: [queue("q").handle(async (job) => { ${handler} })] });`;
}

async function ended(start: readonly string[], command: string, module: string, log: readonly string[] = []) {
  await using folder = await scratch();
  const cwd = folder.path;
  await eddy(["enqueue", "q", "1", "2"], { cwd });
  await Bun.write(folder.file("worker.ts"), module);
  await using run = new RunningCommand([...start, command, ...log], { cwd, env: { NO_COLOR: "1" } });
  return await run.ended();
}

describe.each(Object.entries(RUNTIMES))("on %s", (runtime, start) => {
  test.each([
    ["drain", "process.exit(0)"],
    ["drain", "process.exit(3)"],
    ["drain", "process.exit()"],
    ["worker", "process.exit(0)"],
    ...(runtime === "Deno" ? [["drain", "Deno.exit(0)"]] : []),
  ] as [string, string][])("%s whose handler calls %s ends with 1 and a line", async (command, call) => {
    const { code, out, err } = await ended(start, command, moduleOf(`${call};`));
    expect(code).toBe(1);
    expect(err.match(LINE)).toHaveLength(1);
    expect(out).not.toContain("Drained");
  });

  test("a module that ends the process while it is loaded, too", async () => {
    const { code, out, err } = await ended(start, "stats", moduleOf("", "process.exit(0);"));
    expect([code, out]).toEqual([1, ""]);
    expect(err.match(LINE)).toHaveLength(1);
  });

  test("the command's own end is none", async () => {
    const { code, err } = await ended(start, "drain", moduleOf(""));
    expect([code, err]).toEqual([0, expect.not.stringMatching(LINE)]);
  });

  test.each(
    Object.entries({
      // Deno itself ends at such a one, and calls no listener before.
      ...(runtime === "Deno"
        ? {}
        : { "cannot be looked at": "new Proxy({}, { getPrototypeOf() { throw 1; }, get() { throw 2; } })" }),
      "has no stack that can be read":
        "Object.defineProperty(new Error('hm'), 'stack', { get() { throw 1; } })",
      "has a stack that is no text": "Object.assign(new Error('hm'), { stack: { toString() { throw 1; } } })",
      "has no message that can be read":
        "Object.defineProperty(new Error('hm'), 'message', { get() { throw 1; } })",
      "has a message that is no text": "Object.assign(new Error('hm'), { message: Symbol('hm') })",
      "has a name that is no text": "Object.assign(new Error('hm'), { name: { toString() { throw 1; } } })",
      "has a message of a million characters": "new Error('hm'.repeat(500_000))",
      "is nothing": "undefined",
    }),
  )("what is thrown outside of any job and %s ends no job either", async (_, fault) => {
    const wait = "await new Promise((resolve) => setTimeout(resolve));";
    const module = moduleOf(`setTimeout(() => { throw ${fault}; }); ${wait}`);
    const { code, out, err } = await ended(start, "drain", module, ["--json"]);
    expect([code, out]).toEqual([0, expect.stringContaining('"acked":2')]);
    expect(err.match(/"error":"The worker's code failed|"message":"The worker's code failed/g)).toHaveLength(
      2,
    );
    expect(err.length).toBeLessThan(4_000);
  });

  test.each([
    ["a timer", "setTimeout(() => { throw new RangeError('stray'); });"],
    ["a promise that nobody awaits", "Promise.reject(new RangeError('stray'));"],
  ])("what %s throws is logged, and the jobs are done", async (_, fault) => {
    // A timer set later fires later.
    const wait = "await new Promise((resolve) => setTimeout(resolve));";
    const { code, out, err } = await ended(start, "drain", moduleOf(`${fault} ${wait}`), ["--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ jobs: 2, acked: 2 });
    const logged = err
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(logged.filter(({ level }) => level === "error")).toEqual(
      Array.from({ length: 2 }, () =>
        expect.objectContaining({
          message: "The worker's code failed outside of any job; await what it starts",
          error: "RangeError: stray",
          at: expect.stringMatching(/worker\.ts:3:\d+$/),
        }),
      ),
    );
  });
});
