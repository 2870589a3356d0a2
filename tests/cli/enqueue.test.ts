/** `enqueue`: arguments, NDJSON on standard input, what does not fit, and tending what is in the queue. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { join, resolve } from "node:path";
import { eddy, RunningCommand, scratch, startEddy } from "./process.ts";

// Each test starts processes.
setDefaultTimeout(30_000);

const ROOT = resolve(import.meta.dir, "../..");
const EXAMPLE = join(ROOT, "examples/worker.ts");
const GOOD = '{"to":"ada@example.com","subject":"hi"}';

describe("arguments", () => {
  test("each is a job, exactly as it stands, with the options given", async () => {
    await using folder = await scratch();
    const body = '{ "to": "ada@example.com", "n": 12345678901234567890 }';
    const options = ["--id", "one", "--delay-ms", "3600000", "--priority", "high", "--header", "Trace=a=b"];
    const sent = await eddy(["enqueue", "emails", body, ...options, "--json"], { cwd: folder.path });
    expect([sent.code, sent.err]).toEqual([0, ""]);
    expect(JSON.parse(sent.out)).toEqual({ accepted: 1, duplicates: 0, rejected: 0, ids: ["one"] });
    const again = await eddy(["enqueue", "emails", body, ...options], { cwd: folder.path });
    expect([again.code, again.out]).toEqual([0, "emails: 0 accepted, 1 there already, 0 rejected\n"]);
    const peek = await eddy(["peek", "emails", "--state", "delayed", "--bodies", "--json"], {
      cwd: folder.path,
    });
    expect(JSON.parse(peek.out)).toMatchObject({
      id: "one",
      body,
      priority: "high",
      headers: { trace: "a=b" },
    });
  });

  test("that do not fit are named without being quoted, the others go in", async () => {
    await using folder = await scratch();
    const bodies = [GOOD, '{"to":"hush","subject":"hi"}', "{hush", GOOD];
    const { code, out, err } = await eddy(["enqueue", "emails", ...bodies, "--worker", EXAMPLE], {
      cwd: folder.path,
    });
    expect([code, out]).toEqual([1, "emails: 2 accepted, 2 rejected\n"]);
    expect(err).toMatch(
      /^body 2: The body does not fit the queue's schema at: to\nbody 3: Cannot read .+\n$/,
    );
    expect(err).not.toContain("hush");
  });

  test("are JSON unless they are said to be text", async () => {
    await using folder = await scratch();
    expect((await eddy(["enqueue", "notes", "plain"], { cwd: folder.path })).code).toBe(1);
    expect((await eddy(["enqueue", "notes", "plain", "--codec", "text"], { cwd: folder.path })).code).toBe(0);
    const both = await eddy(["enqueue", "emails", GOOD, "--codec", "text", "--worker", EXAMPLE], {
      cwd: folder.path,
    });
    expect(both.code).toBe(2);
  });

  test("above the limit are refused", async () => {
    await using folder = await scratch();
    const { code, err } = await eddy(["enqueue", "q", '"hush"', "--max-body-bytes", "5"], {
      cwd: folder.path,
    });
    expect([code, err]).toEqual([
      1,
      "body 1: The body is above the limit of 5 bytes, which --max-body-bytes raises\n",
    ]);
  });
});

describe("the summary", () => {
  test("tells the id of a single job", async () => {
    await using folder = await scratch();
    const run = (args: string[], input?: string) =>
      eddy(["enqueue", "q", ...args], { cwd: folder.path, ...(input === undefined ? {} : { input }) });
    expect((await run(["1", "--id", "one"])).out).toBe("q: 1 accepted, 0 rejected (id one)\n");
    const [, id] = /^q: 1 accepted, 0 rejected \(id (\S+)\)\n$/.exec((await run([], "2\n")).out) ?? [];
    const ready = await eddy(["peek", "q", "--json"], { cwd: folder.path });
    const ids = ready.out.trimEnd().split("\n");
    expect(ids.map((line) => JSON.parse(line).id)).toEqual(["one", id]);
    expect((await run(["3", "4"])).out).toBe("q: 2 accepted, 0 rejected\n");
  });

  test("as JSON has the ids in their order, of a long standard input the first 1,000", async () => {
    await using folder = await scratch();
    const json = async (args: string[], count: number) => {
      const input = Array.from({ length: count }, (_, n) => n).join("\n");
      return JSON.parse((await eddy(["enqueue", "q", ...args, "--json"], { cwd: folder.path, input })).out);
    };
    const few = await json([], 3);
    const peeked = await eddy(["peek", "q", "--json"], { cwd: folder.path });
    const ids = peeked.out.trimEnd().split("\n");
    expect(few).toEqual({
      accepted: 3,
      duplicates: 0,
      rejected: 0,
      ids: ids.map((line) => JSON.parse(line).id),
    });
    expect((await json(["1", "{", "2"], 0)).ids).toHaveLength(2);
    const many = await json([], 2_500);
    expect([many.accepted, new Set(many.ids).size]).toEqual([2_500, 1_000]);
  });
});

describe("NDJSON", () => {
  test("a malformed line is named, the rest goes on, the end is 1 with a summary", async () => {
    await using folder = await scratch();
    const lines = Array.from({ length: 3_000 }, (_, i) => (i === 16 ? "{hush" : `{"n":${i}}`));
    const { code, out, err } = await eddy(["enqueue", "tasks"], {
      cwd: folder.path,
      input: lines.join("\n"),
    });
    expect([code, out]).toEqual([1, "tasks: 2999 accepted, 1 rejected\n"]);
    expect(err).toMatch(/^line 17: Cannot read the body as JSON: .+\n$/);
    expect(err).not.toContain("hush");
    const stats = await eddy(["stats", "tasks", "--json"], { cwd: folder.path });
    expect(JSON.parse(stats.out)).toMatchObject([{ queue: "tasks", ready: 2_999 }]);
  });

  test("with ids of its own it can be sent again whole, and only what is missing is added", async () => {
    await using folder = await scratch();
    const run = async (input: string) => {
      const { code, out } = await eddy(["enqueue", "q", "--ids", "file-7", "--json"], {
        cwd: folder.path,
        input,
      });
      return { code, ...JSON.parse(out) };
    };
    // The number is the line's, whatever became of those before it.
    const first = { accepted: 2, duplicates: 0, rejected: 1, ids: ["file-7.1", "file-7.3"] };
    expect(await run("1\n{\n3\n")).toEqual({ code: 1, ...first });
    const again = { accepted: 1, duplicates: 2, rejected: 0, ids: ["file-7.1", "file-7.2", "file-7.3"] };
    expect(await run("1\n2\n3\n")).toEqual({ code: 0, ...again });
    const { out } = await eddy(["stats", "q", "--json"], { cwd: folder.path });
    expect(JSON.parse(out)).toMatchObject([{ queue: "q", ready: 3 }]);
  });

  test("a line above the limit and bytes that are no text are named too", async () => {
    await using folder = await scratch();
    const input = new Uint8Array([
      ...new TextEncoder().encode(`1\n"${"x".repeat(50)}"\n`),
      0x22,
      0xff,
      0x22,
      0x0a,
      0x32,
    ]);
    const { code, out, err } = await eddy(["enqueue", "q", "--max-body-bytes", "40"], {
      cwd: folder.path,
      input,
    });
    expect([code, out]).toEqual([1, "q: 2 accepted, 2 rejected\n"]);
    expect(err).toMatch(
      /^line 2: The body is above the limit of 40 bytes, which --max-body-bytes raises\nline 3: Cannot read the body as text: .+\n$/,
    );
  });

  test("lines are taken in as they come, not only at the end", async () => {
    await using folder = await scratch();
    await using command = startEddy(["enqueue", "q"], { cwd: folder.path });
    for (const n of [1, 2, 3]) {
      command.write(`${n}\n`);
      const deadline = performance.now() + 10_000;
      for (let ready = 0; ready < n; ) {
        const { code, out } = await eddy(["stats", "q", "--json"], { cwd: folder.path });
        ready = code === 0 ? JSON.parse(out)[0].ready : 0;
        if (performance.now() > deadline)
          throw new Error(`Line ${n} was not taken in while the input is open`);
      }
    }
    expect(await command.ended()).toEqual({ code: 0, out: "q: 3 accepted, 0 rejected\n", err: "" });
  });

  test("what is printed reaches a reader whole, however much it is, and a reader that leaves is no error", async () => {
    await using folder = await scratch();
    const input = Array.from({ length: 4_000 }, (_, i) => `{"n":${i},"pad":"${"x".repeat(100)}"}`).join("\n");
    await eddy(["enqueue", "q"], { cwd: folder.path, input });
    const main = `'${process.execPath}' '${join(ROOT, "runtimes/bun/main.ts")}'`;
    const call = `${main} peek q --limit 4000 --bodies --json; echo "code $?" >&2`;
    // The shell reads byte by byte, far slower than the command prints.
    const count = "n=0; while read -r line; do n=$((n+1)); done; echo $n";
    await using slow = new RunningCommand(["sh", "-c", `(${call}) | (${count})`], { cwd: folder.path });
    expect(await slow.ended()).toEqual({ code: 0, out: "4000\n", err: "code 0\n" });
    await using shell = new RunningCommand(["sh", "-c", `(${call}) | head -n 1`], { cwd: folder.path });
    const { out, err } = await shell.ended();
    expect(out.trimEnd().split("\n")).toHaveLength(1);
    expect(err).toBe("code 0\n");
  });

  test("a schema that throws rejects its line, the rest goes on, and what it threw is not told", async () => {
    await using folder = await scratch();
    await Bun.write(
      folder.file("worker.ts"),
      `import { defineWorker, queue } from "${join(ROOT, "src/mod.ts")}";
       const validate = (value) => { if (value === 2) throw "hush"; return { value }; };
       const body = { "~standard": { version: 1, vendor: "test", validate } };
       export default defineWorker({ queues: [queue("q", { body }).handle(() => {})] });`,
    );
    const { code, out, err } = await eddy(["enqueue", "q", "--worker", "worker.ts"], {
      cwd: folder.path,
      input: "1\n2\n3\n",
    });
    expect([code, out]).toEqual([1, "q: 2 accepted, 1 rejected\n"]);
    expect(err).toBe("line 2: The queue's schema threw instead of answering; mend the schema\n");
  });

  test.each(["", "\n\n"])("an input without a job (%p) is said to be empty, the end is 1", async (input) => {
    await using folder = await scratch();
    const err = "Cannot enqueue: standard input is empty; give a BODY or a job a line\n";
    expect(await eddy(["enqueue", "q"], { cwd: folder.path, input })).toEqual({
      code: 1,
      out: "q: 0 accepted, 0 rejected\n",
      err,
    });
    expect(await eddy(["enqueue", "q", "--json"], { cwd: folder.path, input })).toEqual({
      code: 1,
      out: '{"accepted":0,"duplicates":0,"rejected":0,"ids":[]}\n',
      err,
    });
  });

  test("progress shows on a terminal only", async () => {
    await using folder = await scratch();
    await Bun.write(folder.file("in.ndjson"), "1\n2\nhush\n");
    const main = join(ROOT, "runtimes/bun/main.ts");
    const call = `'${process.execPath}' '${main}' enqueue q < in.ndjson`;
    // `script` gives the command a terminal.
    await using onTerminal = new RunningCommand(["script", "-qec", call, "/dev/null"], { cwd: folder.path });
    const seen = await onTerminal.ended();
    expect(seen.code).toBe(1);
    expect(seen.out).toContain("\r\x1b[K2 accepted, 1 rejected");
    expect(seen.out).toContain("line 3: ");
    await using piped = new RunningCommand(["sh", "-c", call], { cwd: folder.path });
    const plain = await piped.ended();
    expect(plain.out + plain.err).not.toContain("\r");
  });

  test("nothing on a terminal's input is a wrong call, not a wait", async () => {
    await using folder = await scratch();
    const call = `'${process.execPath}' '${join(ROOT, "runtimes/bun/main.ts")}' enqueue q`;
    await using onTerminal = new RunningCommand(["script", "-qec", call, "/dev/null"], { cwd: folder.path });
    const { code, out } = await onTerminal.exited();
    expect(code).toBe(2);
    expect(out).toContain("give some, or NDJSON on standard input");
  });
});

describe("tending", () => {
  test("dead letters are shown with their reasons, redriven and cleared; a pause holds", async () => {
    await using folder = await scratch();
    const run = (...args: string[]) => eddy(args, { cwd: folder.path });
    await Bun.write(
      folder.file("worker.ts"),
      `import { defineWorker, queue } from "${join(ROOT, "src/mod.ts")}";
       export default defineWorker({ queues: [queue("q").handle((job) => job.deadLetter("gone\\n\\u001b[31mred"))] });`,
    );
    await run("enqueue", "q", '"hush"', "--id", "a");
    await run("enqueue", "q", '"hush"', "--id", "b");
    expect((await run("pause", "q")).out).toBe("q is paused\n");
    expect((await run("stats", "q")).out).toMatch(/^q\s+2\s+0\s+0\s+0\s+paused$/m);
    const paused = await run("drain");
    expect(paused.out).toMatch(
      /^Drained 0 deliveries in .+; ended because the queues with jobs left are paused; left: 2 \(2 ready\)\n$/,
    );
    expect(paused.code).toBe(3);
    expect((await run("resume", "q", "--json")).out).toBe('{"queue":"q","paused":false}\n');
    await run("enqueue", "q", "1", "--delay-ms", "3600000");
    const drained = await run("drain");
    expect(drained.out).toMatch(
      /^Drained 2 deliveries \(2 dead\) in \d+ ms with 0 requests; .+; left: 1 \(1 delayed, the next due in 35\d{5} ms\)\n$/,
    );
    expect(drained.code).toBe(0);
    expect(drained.out + drained.err).not.toContain("hush");

    const dead = await run("dead", "q");
    expect(dead.out).toMatch(/^a {2}attempts 1 of 5, died .+Z: gone\\n\\x1b\[31mred\nb /);
    expect(dead.out).not.toContain("hush");
    expect((await run("dead", "q", "--bodies", "--limit", "1")).out).toContain('\n  "hush"\n');
    expect(await run("redrive", "q", "c", "b", "b")).toEqual({
      code: 1,
      out: "Put back: 1\n",
      err: "Not put back: c is no dead letter\n",
    });
    expect((await run("clear", "q", "--state", "dead", "--state", "delayed")).out).toBe("Removed: 2\n");
    const stats = await run("stats", "q", "--json");
    expect(JSON.parse(stats.out)).toMatchObject([{ ready: 1, dead: 0 }]);
  });

  test("redriving ids tells which were no dead letters; redriving all takes a limit", async () => {
    await using folder = await scratch();
    const run = (...args: string[]) => eddy(args, { cwd: folder.path });
    await Bun.write(
      folder.file("worker.ts"),
      `import { defineWorker, queue } from "${join(ROOT, "src/mod.ts")}";
       export default defineWorker({ queues: [queue("q").handle((job) => job.deadLetter("gone"))] });`,
    );
    for (const id of ["a", "b", "c", "d"]) await run("enqueue", "q", "1", "--id", id);
    await run("drain");
    const some = await run("redrive", "q", "a", "x", "b", "\u001b[31m", "--json");
    expect([some.code, JSON.parse(some.out)]).toEqual([
      1,
      { queue: "q", redriven: 2, absent: ["x", "\u001b[31m"] },
    ]);
    expect(some.err).toBe("Not put back: x is no dead letter\nNot put back: \\x1b[31m is no dead letter\n");
    expect(await run("redrive", "q", "c")).toEqual({ code: 0, out: "Put back: 1\n", err: "" });
    await run("drain");
    expect((await run("redrive", "q", "--limit", "3")).out).toBe("Put back: 3\n");
    expect((await run("redrive", "q", "--json")).out).toBe('{"queue":"q","redriven":1}\n');
  });
});
