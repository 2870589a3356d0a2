/**
 * Showing text from outside on a terminal.
 *
 * @module
 */

/** Control characters, and those that turn the direction of writing (so that what is read is not what stands there), as escapes. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
  return text.replace(/[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, escaped);
}

function escaped(char: string): string {
  if (char === "\n") return "\\n";
  const code = char.charCodeAt(0).toString(16);
  return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
}

/** The farthest that a Date reaches from its zero, in milliseconds. */
const FARTHEST_MS = 8.64e15;

/** A moment (Unix milliseconds) as text; one that no calendar reaches as its number. */
export function shownMoment(unixMs: number): string {
  return Math.abs(unixMs) <= FARTHEST_MS ? new Date(unixMs).toISOString() : `at Unix time ${unixMs} ms`;
}
