/** Where a body does not fit is told in bounded words, and keys that may be data are not told. */
import { expect, test } from "bun:test";
import { describeIssues, placeOf } from "../../src/schemas.ts";

test("plain keys and indices are told as they are", () => {
  expect(placeOf({ path: ["to", { key: "$list_2" }, 3, "0"] })).toBe("to.$list_2.3.0");
  expect(placeOf({ path: [] })).toBe("the whole body");
  expect(placeOf({})).toBe("the whole body");
});

test("other keys are left out", () => {
  for (const key of ["x".repeat(41), "ada@example.com", "", "a b", "a\n", Symbol("s"), -1, 1.5]) {
    expect(placeOf({ path: ["map", key, "to"] })).toBe("map.[…].to");
  }
});

test("however long keys and paths are, what is told is short", () => {
  const huge = "k".repeat(1_000_000);
  expect(placeOf({ path: Array.from({ length: 100_000 }, () => "key") })).toHaveLength(80);
  const issues = Array.from({ length: 9 }, (_, i) => ({
    message: huge,
    path: [i, huge, ...Array(99).fill("deep")],
  }));
  expect(describeIssues(issues).length).toBeLessThan(600);
});
