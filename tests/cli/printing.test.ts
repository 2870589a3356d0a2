/** What commands print of texts that come from elsewhere: nothing that forges a line, turns the writing or breaks the command. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { join, resolve } from "node:path";
import { printable, shownMoment } from "../../runtimes/cli/printable.ts";
import { eddy, scratch } from "./process.ts";

// Each test starts processes.
setDefaultTimeout(30_000);

const ROOT = resolve(import.meta.dir, "../..");

test("a job is shown with its priority, its headers' names and its attempts, of how many where a worker says it", async () => {
  await using folder = await scratch();
  const run = (...args: string[]) => eddy(args, { cwd: folder.path });
  await run(
    "enqueue",
    "q",
    "1",
    "--id",
    "a",
    "--priority",
    "high",
    "--header",
    "trace=hush",
    "--header",
    "b=c",
  );
  await run("enqueue", "q", "1", "--id", "b");
  const plain = (await run("peek", "q")).out;
  expect(plain).toMatch(
    /^a {2}attempts 0, priority high, headers trace b, enqueued \S+Z\nb {2}attempts 0, enqueued \S+Z\n$/,
  );
  await Bun.write(
    folder.file("worker.ts"),
    `import { defineWorker, queue } from "${ROOT}/src/mod.ts";
     export default defineWorker({ queues: [queue("q").handle(() => {}, { maxAttempts: 3 })] });`,
  );
  expect((await run("peek", "q")).out).toBe(plain.replaceAll("attempts 0", "attempts 0 of 3"));
});

test("control characters and those that turn the writing are shown as escapes, all others as they are", () => {
  expect(printable("a\tb\n\u001b[2J\u009b1m\u007f")).toBe("a\tb\\n\\x1b[2J\\x9b1m\\x7f");
  const turning = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069";
  expect(printable(turning)).toBe(
    "\\u061c\\u200e\\u200f\\u202a\\u202b\\u202c\\u202d\\u202e\\u2066\\u2067\\u2068\\u2069",
  );
  const words = "grüße שלום 日本 👩‍🚀 –";
  expect(printable(words)).toBe(words);
});

test("a moment that no calendar reaches is shown as its number", () => {
  expect(shownMoment(0)).toBe("1970-01-01T00:00:00.000Z");
  expect(shownMoment(8.64e15)).toBe("+275760-09-13T00:00:00.000Z");
  expect(shownMoment(8.64e15 + 1)).toBe("at Unix time 8640000000000001 ms");
});

test("a job that is due in hundreds of thousands of years can be looked at", async () => {
  await using folder = await scratch();
  const late = ["--delay-ms", String(Number.MAX_SAFE_INTEGER), "--id", "late"];
  expect((await eddy(["enqueue", "q", "1", ...late], { cwd: folder.path })).code).toBe(0);
  const { code, out, err } = await eddy(["peek", "q", "--state", "delayed"], { cwd: folder.path });
  expect([code, err]).toEqual([0, ""]);
  expect(out).toMatch(/^late {2}attempts 0, due at Unix time \d{16} ms\n$/);
});

describe("escapes of a terminal arrive as text", () => {
  test("in the reason of a line or body that does not fit", async () => {
    await using folder = await scratch();
    await Bun.write(
      folder.file("worker.ts"),
      `import { defineWorker, queue } from "${join(ROOT, "src/mod.ts")}";
       const validate = () => ({ issues: [{ message: "no", path: ["a\\u001b[31m\\u202e"] }] });
       const body = { "~standard": { version: 1, vendor: "test", validate } };
       export default defineWorker({ queues: [queue("q", { body }).handle(() => {})] });`,
    );
    const call = ["enqueue", "q", "--worker", "worker.ts"];
    const line = await eddy(call, { cwd: folder.path, input: "{}\n" });
    const body = await eddy([...call, "{}"], { cwd: folder.path });
    for (const { code, err } of [line, body]) {
      expect(code).toBe(1);
      expect(err).toMatch(/^(line|body) 1: The body does not fit the queue's schema at: .+\n$/);
      for (const char of ["\u001b", "\u202e"]) expect(err).not.toContain(char);
    }
  });

  test("in what a command fails with", async () => {
    await using folder = await scratch();
    await Bun.write(folder.file("worker.ts"), `throw new Error("a\\u001b[31m\\u202e\\nb");`);
    const { code, err } = await eddy(["drain", "--broker", "memory:"], { cwd: folder.path });
    expect([code, err]).toEqual([
      1,
      "Cannot load the worker: worker.ts failed with Error: a\\x1b[31m\\u202e\\nb; mend it\n",
    ]);
    const missing = await eddy(["worker", "no\u001b[31m.ts"], { cwd: folder.path });
    expect([missing.code, missing.err]).toEqual([2, expect.stringContaining("no\\x1b[31m.ts is not there")]);
  });
});
