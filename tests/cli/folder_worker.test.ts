/** The worker of the current folder: it says which queues there are, and what their bodies must be. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { join, resolve } from "node:path";
import { eddy, scratch } from "./process.ts";

// Each test starts processes.
setDefaultTimeout(30_000);

const ROOT = resolve(import.meta.dir, "../..");
const WORKER = `export { default } from "${join(ROOT, "examples/worker.ts")}";`;
const GOOD = '{"to":"ada@example.com","subject":"hi"}';

/** Calls about a queue, but for their names, with the arguments that follow it. */
const CALLS: [string, ...string[]][] = [
  ["enqueue", GOOD],
  ["pause"],
  ["resume"],
  ["clear", "--state", "dead"],
  ["redrive"],
  ["dead"],
  ["peek"],
  ["stats"],
];

async function folderWith(file: string, source: string) {
  const folder = await scratch();
  await Bun.write(folder.file(file), source);
  return {
    run: (...args: string[]) => eddy(args, { cwd: folder.path }),
    input: (input: string, ...args: string[]) => eddy(args, { cwd: folder.path, input }),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

describe.each(["worker.ts", "worker.js"])("./%s", (file) => {
  test("refuses a misspelt queue by every command, unless any is allowed", async () => {
    await using folder = await folderWith(file, WORKER);
    // The broker's file is there, so that only the name is at fault.
    expect((await folder.run("enqueue", "emails", GOOD)).code).toBe(0);
    for (const [command, ...more] of CALLS) {
      const refused = await folder.run(command, "emial", ...more);
      expect([refused.code, refused.out]).toEqual([2, ""]);
      expect(refused.err).toMatch(
        new RegExp(
          `^Cannot find the queue: ${file} has none of that name; use one of emails\\b.*, or give --any-queue\nSee `,
        ),
      );
      const known = await folder.run(command, "emails", ...more);
      expect([command, known.code, known.err]).toEqual([command, 0, ""]);
      const any = await folder.run(command, "emial", ...more, "--any-queue");
      expect([command, any.code, any.err]).toEqual([command, 0, ""]);
    }
  });
});

test("checks bodies at the enqueue, unless any queue is allowed", async () => {
  await using folder = await folderWith("worker.ts", WORKER);
  const bad = '{"to":"hush"}';
  const argument = await folder.run("enqueue", "emails", bad);
  expect([argument.code, argument.out]).toEqual([1, "emails: 0 accepted, 1 rejected\n"]);
  expect(argument.err).toStartWith("body 1: The body does not fit the queue's schema at: ");
  const line = await folder.input(bad, "enqueue", "emails");
  expect([line.code, line.out]).toEqual([1, "emails: 0 accepted, 1 rejected\n"]);
  expect((await folder.run("enqueue", "emails", bad, "--any-queue")).code).toBe(0);
});

test("says how bodies are read: --codec goes with --any-queue only", async () => {
  await using folder = await folderWith("worker.ts", WORKER);
  const refused = await folder.run("enqueue", "emails", GOOD, "--codec", "text");
  expect([refused.code, refused.out]).toEqual([2, ""]);
  expect(refused.err).toContain(
    "the queue in worker.ts says how its bodies are read; leave it out, or give --any-queue",
  );
  expect((await folder.run("enqueue", "notes", "plain", "--codec", "text", "--any-queue")).code).toBe(0);
});

test("that cannot be loaded ends with 1 and the way round it; another by --worker is taken instead", async () => {
  for (const [source, text] of [
    ["throw new Error('boom');", "worker.ts failed with Error: boom; mend it"],
    ["export default { fetch() {} };", "is no worker; write `export default defineWorker({ … })`"],
  ] as const) {
    await using folder = await folderWith("worker.ts", source);
    for (const [command, ...more] of CALLS) {
      const { code, out, err } = await folder.run(command, "emails", ...more);
      expect([command, code, out]).toEqual([command, 1, ""]);
      expect(err).toStartWith("Cannot load the worker: ");
      expect(err).toEndWith(`${text}, or go without it with --any-queue\n`);
    }
    expect((await folder.run("enqueue", "emails", GOOD, "--any-queue")).code).toBe(0);
    const other = ["--worker", join(ROOT, "examples/worker.ts")];
    expect((await folder.run("enqueue", "emails", GOOD, ...other)).code).toBe(0);
    const both = await folder.run("enqueue", "emails", GOOD, ...other, "--any-queue");
    expect([both.code, both.err]).toEqual([
      2,
      expect.stringContaining("Cannot use --any-queue with --worker: "),
    ]);
  }
});
