/**
 * Where an error came about.
 *
 * @module
 */

/** How many places of a fault's stack are shown. */
const PLACES = 5;

/** The first places of an error's stack, as `file:line:column`; none where it cannot be read. Never throws, whatever the error's fields do. */
export function placesOf(error: Error): string[] {
  try {
    return placesIn(error);
  } catch {
    return [];
  }
}

function placesIn(error: Error): string[] {
  const stack = String(error.stack ?? "");
  // What the message holds is no place, even if it looks like one.
  const message = stack.indexOf(String(error.message));
  return stack
    .slice(message < 0 ? 0 : message + String(error.message).length)
    .split("\n")
    .flatMap((line) => /^\s*at (?:.* \()?(?:async )?(\S.*:\d+:\d+)\)?$/.exec(line)?.[1] ?? [])
    .slice(0, PLACES);
}
