/**
 * Tables for people.
 *
 * @module
 */

/** Lines of a table: columns as wide as they must be, numbers to the right. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string[] {
  const text = rows.map((row) =>
    row.map((cell) => (typeof cell === "number" ? cell.toLocaleString("en") : cell)),
  );
  const widths = head.map((name, i) => Math.max(name.length, ...text.map((row) => row[i]?.length ?? 0)));
  const right = head.map((_, i) => rows.some((row) => typeof row[i] === "number"));
  return [head, ...text].map((row) =>
    row
      .map((cell, i) => (right[i] ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!)))
      .join("  ")
      .trimEnd(),
  );
}
