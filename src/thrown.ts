/**
 * What code that is not ours threw, in words.
 *
 * @module
 */
import { MAX_ERROR_LENGTH } from "./broker.ts";

/** Says what was thrown. Never throws, whatever it is: one whose fields throw when they are read, too. */
export function describeThrown(thrown: unknown): string {
  if (typeof thrown === "string") return thrown;
  try {
    if (thrown instanceof Error) return `${thrown.name}: ${thrown.message}`;
  } catch {
    // An error that cannot even be read is told by its kind.
  }
  return noError(thrown);
}

/** Says that what was thrown is no Error, and of what kind it is. */
export function noError(thrown: unknown): string {
  const what =
    thrown === null || thrown === undefined
      ? `The value ${thrown}`
      : typeof thrown === "object"
        ? "An object"
        : `A ${typeof thrown}`;
  return `${what} was thrown instead of an Error`;
}

/** An error's text as it is kept and told: well-formed, and no longer than {@linkcode MAX_ERROR_LENGTH}. */
export function cutErrorText(text: string): string {
  const wellFormed = text.isWellFormed() ? text : text.toWellFormed();
  return wellFormed.length > MAX_ERROR_LENGTH
    ? `${wellFormed.slice(0, MAX_ERROR_LENGTH - 1)}…`.toWellFormed()
    : wellFormed;
}
