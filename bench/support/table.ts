/**
 * Figures as a table for people, and as one JSON object a line for programs. Pure.
 *
 * @module
 */
import type { Row } from "./bench.ts";
import { written } from "./figures.ts";

const HEAD = ["case", "value", "", "against", "ratio", "bar", ""];
/** Columns of figures, written flush right. */
const RIGHT = new Set([1, 4]);

/** The lines of a table. */
export function table(rows: readonly Row[]): string[] {
  const cells = rows.map((row) => [
    row.case,
    written(row.value),
    row.unit,
    row.against ?? "",
    row.ratio === undefined ? "" : `${written(row.ratio)} ×`,
    row.bar?.text ?? "",
    row.bar === undefined ? "" : row.bar.met ? "met" : "NOT MET",
  ]);
  const widths = HEAD.map((head, at) =>
    Math.max(head.length, ...cells.map((line) => (line[at] as string).length)),
  );
  const line = (texts: readonly string[]) =>
    texts
      .map((text, at) =>
        RIGHT.has(at) ? text.padStart(widths[at] as number) : text.padEnd(widths[at] as number),
      )
      .join("  ")
      .trimEnd();
  return [line(HEAD), line(widths.map((width) => "─".repeat(width))), ...cells.map(line)];
}

/** One figure for a program. */
export function jsonLine(bench: string, row: Row): string {
  return JSON.stringify({
    bench,
    case: row.case,
    value: row.value,
    unit: row.unit,
    against: row.against ?? null,
    ratio: row.ratio ?? null,
  });
}
