import { describe, expect, test } from "bun:test";
import type { WorkerOptions } from "../../src/options.ts";
import { queue } from "../../src/queue.ts";
import type { StandardSchema } from "../../src/schemas.ts";
import { defineWorker } from "../../src/worker.ts";
import { noStrayRejections } from "../support/world.ts";

noStrayRejections();

const work = queue("work");

describe("defining a worker", () => {
  const handler = work.handle(() => {});
  const refusal = (act: () => unknown): string => {
    try {
      act();
    } catch (error) {
      return `${(error as Error).name}: ${(error as Error).message}`;
    }
    return "none";
  };
  const define = (options: unknown) => () =>
    defineWorker({ queues: [handler], ...(options as WorkerOptions) });

  test("has defaults", () => {
    expect(define({})()).toMatchObject({ graceMs: 10_000, abortWaitMs: 2_000, settleWaitMs: 5_000 });
    expect(define({ graceMs: 0 })().graceMs).toBe(0);
  });

  test("needs queues with handlers, each once", () => {
    expect(refusal(() => defineWorker({ queues: [] }))).toBe(
      "TypeError: Cannot define a worker: queues is empty; give at least one queue with a handler",
    );
    expect(refusal(() => defineWorker({} as never))).toContain("queues is empty");
    expect(refusal(() => defineWorker({ queues: [work as never] }))).toContain(
      "call .handle(…) on the queue",
    );
    expect(refusal(() => defineWorker({ queues: [handler, handler] }))).toBe(
      "TypeError: Cannot define a worker: queue work is given twice; give it one handler",
    );
  });

  test("takes only whole milliseconds and known options", () => {
    for (const field of ["graceMs", "abortWaitMs", "settleWaitMs"]) {
      for (const value of [-1, 1.5, Number.NaN, 2 ** 31]) {
        expect(refusal(define({ [field]: value }))).toStartWith(
          `RangeError: Cannot define a worker: ${field} is ${value}; give whole milliseconds from 0`,
        );
      }
      expect(refusal(define({ [field]: "5" }))).toContain(`${field} is a string`);
    }
    expect(refusal(define({ log: "console" }))).toContain("log is a string; give a function");
  });
});

describe("naming a queue", () => {
  const refusal = (...args: unknown[]): string => {
    try {
      (queue as (...args: unknown[]) => unknown)(...args);
    } catch (error) {
      return `${(error as Error).name}: ${(error as Error).message}`;
    }
    return "none";
  };

  test("takes 1 to 100 plain characters, and says what is wrong with others", () => {
    expect(refusal("emails_2-B")).toBe("none");
    expect(refusal("a".repeat(100))).toBe("none");
    for (const [name, why] of [
      ["", "the name is empty"],
      ["a b!", '"a b!" has a character that none may have'],
      ["ä", '"ä" has a character that none may have'],
      ['a"b', '"a\\"b" has a character that none may have'],
      ["a\u001b[2Jb", "the name has a character that none may have"],
      ["a\u202eb", "the name has a character that none may have"],
      ["a".repeat(101), "the name is of 101 characters"],
      [5, "the name is a number"],
      [null, "the name is null"],
    ] as const) {
      expect(refusal(name as never)).toBe(
        `TypeError: Cannot name a queue: ${why}; use 1 to 100 of A-Z, a-z, 0-9, "_" and "-"`,
      );
    }
  });

  test("takes known codecs, Standard Schemas and a window", () => {
    expect(refusal("q", { codec: "xml" })).toContain('codec is none of "json", "text", "bytes"');
    expect(refusal("q", { body: {} })).toContain("body is no Standard Schema");
    for (const dedupeWindowMs of [0, -1, 1.5, "5"]) {
      expect(refusal("q", { dedupeWindowMs })).toContain("dedupeWindowMs is");
    }
    const schema: StandardSchema = {
      "~standard": { version: 1, vendor: "t", validate: (value) => ({ value }) },
    };
    expect(refusal("q", { codec: "text", body: schema, dedupeWindowMs: 1 })).toBe("none");
  });

  test("takes functions as handlers, and whole batch sizes", () => {
    expect(() => work.handle("no" as never)).toThrow(
      "Cannot handle queue work: the handler is a string; give a function",
    );
    for (const batchSize of [0, -1, 1.5, "5" as unknown as number]) {
      expect(() => work.handleBatch(() => {}, { batchSize })).toThrow("give a whole number from 1 on");
    }
  });
});
