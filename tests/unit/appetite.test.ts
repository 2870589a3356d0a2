/** Whether a claim would bring something, by what was seen. */
import { describe, expect, test } from "bun:test";
import { Appetite } from "../../src/appetite.ts";

describe("appetite", () => {
  const after = (asked: number, got: number, again = false): Appetite => {
    const appetite = new Appetite();
    appetite.claims();
    appetite.answered(asked, got, again);
    return appetite;
  };

  test("is there at first, and after a claim that brought all it asked for", () => {
    expect(new Appetite().isHungry).toBe(true);
    expect(after(4, 4).isHungry).toBe(true);
  });

  test("is gone while a claim is under way, and after one that came back short", () => {
    const appetite = new Appetite();
    appetite.claims();
    expect(appetite.isHungry).toBe(false);
    expect(after(4, 3).isHungry).toBe(false);
    expect(after(4, 3).lastGot).toBe(3);
  });

  test("what came while a claim was under way is not forgotten with its answer, but with the next claim", () => {
    const appetite = new Appetite();
    appetite.claims();
    appetite.wake();
    appetite.answered(4, 0, false);
    expect(appetite.isHungry).toBe(true);
    appetite.claims();
    appetite.answered(4, 0, false);
    expect(appetite.isHungry).toBe(false);
  });

  test("one that was given something back looks again at once, whatever it was told of before", () => {
    const appetite = after(4, 0);
    appetite.rouse();
    expect(appetite.isHungry).toBe(true);
  });

  test("a claim sent again that brings nothing says nothing of the queue; the next one that does so says it", () => {
    const appetite = new Appetite();
    appetite.claims();
    expect(appetite.answered(4, 0, true)).toBe(false);
    expect(appetite.isHungry).toBe(true);
    appetite.claims();
    expect(appetite.answered(4, 0, true)).toBe(true);
    expect(appetite.isHungry).toBe(false);
  });
});
