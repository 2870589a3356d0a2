import { describe, expect, test } from "bun:test";
import { AutoPrefetch } from "../../src/prefetch.ts";
import golden from "../golden/prefetch-traces.json";

describe("the 250 ms rule", () => {
  test("there are 27 golden traces", () => {
    expect(golden.traces.length).toBe(27);
  });

  for (const trace of golden.traces) {
    test(`golden: ${trace.name}`, () => {
      const rule = new AutoPrefetch();
      const asked: number[] = [];
      for (const step of trace.steps) {
        asked.push(rule.size());
        rule.claimed(step.asked, step.got);
        for (const ms of step.ranMs) rule.ran(ms);
      }
      expect(asked).toEqual(trace.steps.map((step) => step.asked));
    });
  }
});
