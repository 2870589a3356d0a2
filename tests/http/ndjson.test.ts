/** Cutting bytes into lines: against a plain split of the whole, however the chunks fall. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Line, LineSplitter } from "../../src/http/ndjson.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function split(chunks: readonly Uint8Array[], maxLineBytes: number): Line[] {
  const splitter = new LineSplitter(maxLineBytes);
  return [...chunks.flatMap((chunk) => splitter.push(chunk)), ...splitter.end()];
}

function readable(lines: readonly Line[]): (readonly [number, string])[] {
  return lines.map(
    (line) => [line.number, line.tooLong ? "(too long)" : decoder.decode(line.bytes)] as const,
  );
}

/** Cuts a text's bytes at the places given. */
function cut(text: string, places: readonly number[]): Uint8Array[] {
  const bytes = encoder.encode(text);
  const sorted = [0, ...places.map((place) => place % (bytes.length + 1)), bytes.length].sort(
    (a, b) => a - b,
  );
  return sorted.slice(1).map((to, i) => bytes.slice(sorted[i], to));
}

describe("lines", () => {
  test("blank ones are skipped and counted, carriage returns and a byte order mark are left out", () => {
    const text = '\ufeff{"a":1}\r\n\n  \t\r\n[2]\n\r\n"last"';
    expect(readable(split([encoder.encode(text)], 100))).toEqual([
      [1, '{"a":1}'],
      [4, "[2]"],
      [6, '"last"'],
    ]);
  });

  test("one that is too long is named and the next is whole", () => {
    const lines = split(
      [encoder.encode(`1\n${"x".repeat(11)}\n${"y".repeat(10)}\r\n${"z".repeat(5000)}`)],
      10,
    );
    expect(readable(lines)).toEqual([
      [1, "1"],
      [2, "(too long)"],
      [3, "y".repeat(10)],
      [4, "(too long)"],
    ]);
  });

  test("the first may be as long as the others, its byte order mark not counted", () => {
    expect(readable(split([encoder.encode(`\ufeff${"x".repeat(10)}\r\n`)], 10))).toEqual([
      [1, "x".repeat(10)],
    ]);
    expect(readable(split([encoder.encode(`${"x".repeat(11)}\n`)], 10))).toEqual([[1, "(too long)"]]);
  });

  test("chunks may be cut anywhere, and their memory used again", () => {
    const piece = fc.oneof(
      fc.constantFrom("\n", "\r\n", " ", "\t"),
      fc.string({ maxLength: 12, unit: "grapheme" }),
    );
    fc.assert(
      fc.property(
        fc.array(piece),
        fc.array(fc.nat()),
        fc.integer({ min: 1, max: 20 }),
        (pieces, places, max) => {
          const text = pieces.join("");
          const expected = text
            .replace(/^\ufeff/, "")
            .split("\n")
            .map((line, i) => [i + 1, line.replace(/\r$/, "")] as const)
            .filter(([, line]) => !/^[ \t\r]*$/.test(line) || encoder.encode(line).length > max)
            .map(
              ([number, line]) => [number, encoder.encode(line).length > max ? "(too long)" : line] as const,
            );
          const splitter = new LineSplitter(max);
          const lines: Line[] = [];
          for (const chunk of cut(text, places)) {
            lines.push(...splitter.push(chunk).map(copied));
            chunk.fill(0);
          }
          lines.push(...splitter.end());
          expect(readable(lines)).toEqual(expected);
        },
      ),
    );
  });
});

function copied(line: Line): Line {
  return line.tooLong ? line : { number: line.number, bytes: line.bytes.slice() };
}
