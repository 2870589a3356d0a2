/** The parts of the benches that decide how figures are made and written. */
import { describe, expect, test } from "bun:test";
import { alternate } from "../../bench/support/alternate.ts";
import { atLeast, atMost } from "../../bench/support/bench.ts";
import { median, quantile, written } from "../../bench/support/figures.ts";
import { help, readCommandLine } from "../../bench/support/options.ts";
import { jsonLine, table } from "../../bench/support/table.ts";

describe("figures", () => {
  test("a median is the middle one, or between the middle two", () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
    expect(median([7])).toBe(7);
    expect(median([])).toBeNaN();
  });

  test("a quantile lies between its neighbours, and leaves the values as they were", () => {
    const values = [50, 10, 40, 20, 30];
    expect(quantile(values, 0)).toBe(10);
    expect(quantile(values, 1)).toBe(50);
    expect(quantile(values, 0.99)).toBeCloseTo(49.6);
    expect(values).toEqual([50, 10, 40, 20, 30]);
  });

  test("three digits count", () => {
    expect([123_456.7, 1_000, 999.4, 12.345, 1.2345, 0.012345, 0, 16, Number.NaN].map(written)).toEqual([
      "123,457",
      "1,000",
      "999",
      "12.3",
      "1.23",
      "0.0123",
      "0",
      "16",
      "–",
    ]);
  });

  test("a bar is met at its edge", () => {
    expect(atLeast(8, 8, " ×")).toEqual({ text: "at least 8 ×", met: true });
    expect(atLeast(7.99, 8).met).toBe(false);
    expect(atMost(0.07, 0.07)).toEqual({ text: "at most 0.07", met: true });
    expect(atMost(0.0701, 0.07).met).toBe(false);
    expect(atLeast(Number.NaN, 8).met).toBe(false);
  });
});

describe("contenders", () => {
  test("run in turn, each round the other way round", async () => {
    const ran: string[] = [];
    const contender = (name: string) => async () => {
      ran.push(name);
      return `${name}${ran.length}`;
    };
    const results = await alternate(3, [contender("a"), contender("b"), contender("c")]);
    expect(ran.join("")).toBe("abccbaabc");
    expect(results).toEqual([
      ["a1", "a6", "a7"],
      ["b2", "b5", "b8"],
      ["c3", "c4", "c9"],
    ]);
  });
});

describe("tables", () => {
  const row = { case: "one", value: 1234.5, unit: "jobs/s", against: "other: 100", ratio: 12.345 };

  test("say whether a bar is met", () => {
    const lines = table([
      { ...row, bar: atLeast(12.345, 8, " ×") },
      { case: "another one", value: 3, unit: "ms", bar: atMost(3, 2) },
    ]);
    expect(lines.slice(2)).toEqual([
      "one          1,235  jobs/s  other: 100  12.3 ×  at least 8 ×  met",
      "another one      3  ms                          at most 2     NOT MET",
    ]);
  });

  test("a JSON line has six fields, whatever is known", () => {
    expect(JSON.parse(jsonLine("core", { ...row, bar: atMost(1, 2) }))).toEqual({ bench: "core", ...row });
    expect(JSON.parse(jsonLine("core", { case: "one", value: 1, unit: "ms" }))).toEqual({
      bench: "core",
      case: "one",
      value: 1,
      unit: "ms",
      against: null,
      ratio: null,
    });
  });
});

describe("the command line", () => {
  const known = ["core", "link"];

  test("names benches, or all of them", () => {
    expect(readCommandLine([], known)).toEqual({ kind: "run", names: known, json: false, size: "full" });
    expect(readCommandLine(["link", "--json", "--quick", "link"], known)).toEqual({
      kind: "run",
      names: ["link"],
      json: true,
      size: "quick",
    });
    expect(readCommandLine(["core", "--tiny"], known)).toMatchObject({ size: "tiny" });
  });

  test("says what it cannot read", () => {
    expect(readCommandLine(["core", "nope"], known)).toEqual({
      kind: "wrong",
      message: "Cannot run bench nope: there is none; use some of core, link",
    });
    expect(readCommandLine(["--fast"], known)).toMatchObject({ kind: "wrong" });
    expect(readCommandLine(["--help"], known)).toEqual({ kind: "help" });
    expect(help([{ name: "core", title: "the loop" }])).toContain("  core  the loop\n");
  });
});
