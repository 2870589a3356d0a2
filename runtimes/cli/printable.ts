/**
 * Showing text from outside on a terminal.
 *
 * @module
 */

/** Control characters as escapes, so that a text can neither forge a line nor move the cursor. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
  return text.replace(/[\x00-\x08\x0a-\x1f\x7f-\x9f]/g, (char) =>
    char === "\n" ? "\\n" : `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}
