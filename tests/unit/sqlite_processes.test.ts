/** Several processes on one file: real ones, some of them killed. */

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { drain, ids, idsOf, put, take } from "../support/conformance_steps.ts";
import { Scratch } from "../support/sqlite_scratch.ts";

const CHILD = join(import.meta.dir, "../support/sqlite_child.ts");

/** A child process, and the lines it has said so far. */
class Child {
  readonly lines: string[] = [];
  readonly #process: Bun.Subprocess<"ignore", "pipe", "inherit">;
  readonly #reading: Promise<void>;
  #wake: () => void = () => {};

  constructor(...args: string[]) {
    this.#process = Bun.spawn([process.execPath, CHILD, ...args], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    });
    this.#reading = this.#read();
  }

  /** Resolves once the condition on its lines holds; rejects when it ends before that. */
  async until(condition: (lines: readonly string[]) => boolean): Promise<void> {
    let isOver = false;
    void this.#reading.then(() => {
      isOver = true;
      this.#wake();
    });
    while (!condition(this.lines)) {
      if (isOver) throw new Error(`The child ended after ${this.lines.length} lines`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Waits until it ended by itself. */
  async ended(): Promise<void> {
    expect(await this.#process.exited).toBe(0);
    await this.#reading;
  }

  /** Ends it with SIGKILL, and reads what it had said until then. */
  async kill(): Promise<void> {
    this.#process.kill(9);
    await this.#process.exited;
    await this.#reading;
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of this.#process.stdout) {
      const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = parts.pop() ?? "";
      this.lines.push(...parts);
      this.#wake();
    }
  }
}

let scratch: Scratch;
let children: Child[];

function start(...args: string[]): Child {
  const child = new Child(...args);
  children.push(child);
  return child;
}

beforeEach(() => {
  scratch = new Scratch();
  children = [];
});
afterEach(async () => {
  for (const child of children) await child.kill();
  await scratch.remove();
});

function integrity(): unknown {
  const db = new Database(scratch.file);
  const row = db.query("PRAGMA integrity_check").get();
  db.close();
  return row;
}

test("several processes make a new file together, and finish every job once between them", async () => {
  const consumers = [1, 2, 3].map(() => start("consume", scratch.file));
  const producers = ["a", "b", "c"].map((prefix) => start("produce", scratch.file, prefix, "150"));
  for (const producer of producers) await producer.ended();
  const wanted = producers.flatMap((producer) => producer.lines).sort();
  expect(wanted).toEqual([...idsOf("a", 150), ...idsOf("b", 150), ...idsOf("c", 150)].sort());
  const acked = () => consumers.flatMap((consumer) => consumer.lines.filter((line) => line !== "ready"));
  await Promise.race(consumers.map((consumer) => consumer.until(() => acked().length >= wanted.length)));
  expect(acked().sort()).toEqual(wanted);
  const queue = await scratch.queue();
  expect(await queue.sizes!()).toEqual({ ready: 0, delayed: 0, held: 0, dead: 0, paused: false });
}, 60_000);

test("a process killed in mid-transaction leaves the file as if it had never begun", async () => {
  const queue = await scratch.queue();
  await put(queue, ...idsOf("kept-", 20));
  const child = start("stall", scratch.file);
  await child.until((lines) => lines.includes("stalled"));
  expect(await queue.sizes!()).toMatchObject({ ready: 20 });
  await child.kill();
  await put(queue, "after");
  expect(ids(await drain(queue))).toEqual([...idsOf("kept-", 20), "after"]);
  expect(integrity()).toEqual({ integrity_check: "ok" });
}, 60_000);

test("a process killed in mid-transaction is no trouble to who opens the file next", async () => {
  const before = await scratch.queue();
  await put(before, ...idsOf("kept-", 20));
  const child = start("stall", scratch.file);
  await child.until((lines) => lines.includes("stalled"));
  await child.kill();
  const queue = await scratch.queue();
  expect(ids(await drain(queue))).toEqual(idsOf("kept-", 20));
  expect(integrity()).toEqual({ integrity_check: "ok" });
}, 60_000);

test("what a producer was told is in the queue, whenever it is killed", async () => {
  const told: string[] = [];
  for (const prefix of ["a", "b", "c", "d"]) {
    const child = start("produce", scratch.file, prefix, "100000");
    await child.until((lines) => lines.length >= 20);
    await child.kill();
    told.push(...child.lines);
  }
  expect(integrity()).toEqual({ integrity_check: "ok" });
  const there = new Set(ids(await drain(await scratch.queue())));
  expect(told.filter((id) => !there.has(id))).toEqual([]);
}, 60_000);

test("a consumer killed at work loses no job: what it held comes back as suspect, what it acked does not", async () => {
  let nowMs = Date.now();
  const queue = await scratch.queue(undefined, () => nowMs);
  const wanted = idsOf("a", 600);
  await put(queue, ...wanted);
  const acked = new Set<string>();
  for (let round = 0; round < 3; round += 1) {
    const child = start("consume", scratch.file);
    await child.until((lines) => lines.length > 60);
    await child.kill();
    for (const line of child.lines) acked.add(line);
  }
  expect(integrity()).toEqual({ integrity_check: "ok" });
  nowMs = Date.now() + 60_000;
  const rest = await drain(queue);
  for (const delivery of rest.filter((one) => one.suspect)) expect(delivery.attempt).toBeGreaterThan(1);
  // An ack may have been killed between the commit and the line that tells of it: then the job is in neither.
  const untold = wanted.filter((id) => !acked.has(id) && !ids(rest).includes(id));
  expect(untold.length).toBeLessThanOrEqual(3 * 7);
  expect(ids(rest).filter((id) => acked.has(id))).toEqual([]);
  expect(rest.filter((one) => one.suspect).length).toBeLessThanOrEqual(3 * 7);
}, 60_000);

test("a watcher is woken by another process's enqueue", async () => {
  const queue = await scratch.queue();
  const woken = Promise.withResolvers<void>();
  const watch = await queue.watch!(woken.resolve, woken.reject);
  const child = start("produce", scratch.file, "a", "1");
  await woken.promise;
  expect(ids(await take(queue))).toEqual(["a1"]);
  await watch.close();
  await child.ended();
}, 60_000);
