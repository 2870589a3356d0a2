import { describe, expect, test } from "bun:test";
import type { QueueSizes } from "../../src/broker.ts";
import { NextDue } from "../../src/next_due.ts";

const NEVER = Number.POSITIVE_INFINITY;

function sizes(some: Partial<QueueSizes>): QueueSizes {
  return { ready: 0, delayed: 0, held: 0, dead: 0, paused: false, ...some };
}

describe("when the next job of a queue is due", () => {
  test("is what the engine last told, in what is left of it", () => {
    const due = new NextDue();
    expect(due.inMs(0, undefined)).toBeUndefined();
    due.told(100, 50, NEVER);
    expect(due.inMs(110.5, undefined)).toBe(40);
    expect(due.inMs(150, undefined)).toBe(0);
    expect(due.inMs(999, undefined)).toBe(0);
    due.told(200, undefined, NEVER);
    expect(due.inMs(210, undefined)).toBeUndefined();
  });

  test("is not the end of a lease of the run's own", () => {
    const due = new NextDue();
    due.told(0, 30_000, 29_000);
    expect(due.inMs(10, undefined)).toBeUndefined();
    due.told(0, 28_999, 29_000);
    expect(due.inMs(0, undefined)).toBe(28_999);
  });

  test("is what the run itself sent back since, if that is sooner", () => {
    const due = new NextDue();
    due.sentBack(500);
    due.sentBack(400);
    expect(due.inMs(0, undefined)).toBe(400);
    due.told(0, 300, NEVER);
    expect(due.inMs(0, undefined)).toBe(300);
    due.sentBack(200);
    expect(due.inMs(0, undefined)).toBe(200);
    // The engine knows of all that by the next claim; what comes after its own lease it does not tell.
    due.told(0, 100, 50);
    expect(due.inMs(0, undefined)).toBe(200);
    due.told(0, 300, 50);
    expect(due.inMs(0, undefined)).toBeUndefined();
  });

  test("is nothing where no such job is there any more", () => {
    const due = new NextDue();
    due.told(0, 100, NEVER);
    expect(due.inMs(0, sizes({ ready: 5 }))).toBeUndefined();
    expect(due.inMs(0, sizes({ delayed: 1 }))).toBe(100);
    expect(due.inMs(0, sizes({ held: 1 }))).toBe(100);
    expect(due.inMs(100, sizes({ delayed: 1 }))).toBeUndefined();
    expect(due.inMs(100, sizes({ held: 1 }))).toBe(0);
    expect(due.inMs(100, sizes({ ready: 1 }))).toBe(0);
    expect(due.inMs(100, sizes({ ready: 1, paused: true }))).toBeUndefined();
  });
});
