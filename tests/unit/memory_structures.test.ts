import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Fifo } from "../../adapters/memory/fifo.ts";
import { Heap } from "../../adapters/memory/heap.ts";
import { Remembered } from "../../adapters/remembered.ts";

describe("Heap", () => {
  test("gives back what was put in, least first, whatever the order of pushes and pops", () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.integer({ min: -50, max: 50 }))), (steps) => {
        const heap = new Heap<number>((a, b) => a < b);
        const model: number[] = [];
        for (const step of steps) {
          if (step === null) {
            expect(heap.pop()).toBe(model.shift() as number);
          } else {
            heap.push(step);
            model.push(step);
            model.sort((a, b) => a - b);
          }
          expect(heap.size).toBe(model.length);
          expect(heap.peek()).toBe(model[0] as number);
          expect(heap.sorted()).toEqual(model);
          expect(heap.countWhile((item) => item <= 0)).toBe(model.filter((item) => item <= 0).length);
        }
        heap.clear();
        expect(heap.pop()).toBeUndefined();
      }),
    );
  });
});

describe("Fifo", () => {
  test("keeps the order over many thousands, its spent front cut off", () => {
    const fifo = new Fifo<number>();
    let next = 0;
    let expected = 0;
    for (let round = 0; round < 200; round += 1) {
      for (let i = 0; i < 150; i += 1) fifo.push(next++);
      for (let i = 0; i < 140; i += 1) expect(fifo.shift()).toBe(expected++);
      expect(fifo.size).toBe(next - expected);
      expect(fifo.first(3)).toEqual([expected, expected + 1, expected + 2]);
    }
    while (fifo.size > 0) expect(fifo.shift()).toBe(expected++);
    expect(expected).toBe(next);
    expect(fifo.shift()).toBeUndefined();
  });

  test("takes out by a test, at most a limit, and leaves the rest in order", () => {
    const fifo = new Fifo<number>();
    for (let i = 0; i < 10; i += 1) fifo.push(i);
    fifo.shift();
    expect(fifo.take(3, (item) => item % 2 === 1)).toEqual([1, 3, 5]);
    expect(fifo.first(100)).toEqual([2, 4, 6, 7, 8, 9]);
    fifo.clear();
    expect(fifo.size).toBe(0);
  });
});

describe("Remembered", () => {
  test("keeps an entry at least as long as asked, and not for ever", () => {
    const memory = new Remembered<number>(100);
    memory.set("a", 1, 0);
    memory.set("b", 2, 99);
    expect(memory.get("a", 99)).toBe(1);
    expect(memory.get("a", 100)).toBe(1);
    expect(memory.get("b", 198)).toBe(2);
    expect(memory.get("a", 200)).toBeUndefined();
    expect(memory.get("b", 200)).toBeUndefined();
  });

  test("after a long silence nothing old is left", () => {
    const memory = new Remembered<number>(100);
    memory.set("a", 1, 0);
    expect(memory.get("a", 1000)).toBeUndefined();
  });

  test("a longer time holds from then on, a shorter one changes nothing", () => {
    const memory = new Remembered<number>(100);
    memory.set("a", 1, 0);
    memory.keepFor(1000);
    memory.keepFor(10);
    expect(memory.get("a", 999)).toBe(1);
  });

  test("every entry lives between the two bounds, whenever it is set and asked for", () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 60 }), { maxLength: 60 }), (gaps) => {
        const memory = new Remembered<number>(100);
        const setAt = new Map<string, number>();
        let now = 0;
        gaps.forEach((gap, i) => {
          now += gap;
          for (const [key, at] of setAt) {
            const found = memory.get(key, now);
            if (now - at < 100) expect(found).toBe(at);
            if (now - at >= 300) expect(found).toBeUndefined();
          }
          memory.set(`k${i}`, now, now);
          setAt.set(`k${i}`, now);
        });
      }),
    );
  });
});
