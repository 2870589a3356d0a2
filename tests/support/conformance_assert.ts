/**
 * Asserts of our own for the conformance cases, which run inside Bun, Deno and workerd alike: so no test library is
 * imported here.
 *
 * @module
 */

/** A case's assertion that did not hold. */
export class ConformanceFailure extends Error {
  override name = "ConformanceFailure";
}

/** Fails unless the condition holds. */
export function that(condition: boolean, what: string): asserts condition {
  if (!condition) throw new ConformanceFailure(what);
}

/** Fails unless both are equal, deep and by type; typed arrays by their bytes. */
export function same(actual: unknown, expected: unknown, what: string): void {
  if (!equal(actual, expected)) {
    throw new ConformanceFailure(`${what}: got ${shown(actual)}, expected ${shown(expected)}`);
  }
}

/** Fails unless the promise rejects with an error of that name whose text has every given word. */
export async function rejects(
  promise: Promise<unknown>,
  name: string,
  words: readonly string[],
  what: string,
): Promise<void> {
  let error: unknown;
  try {
    await promise;
  } catch (caught) {
    error = caught;
  }
  that(error instanceof Error, `${what}: it did not reject with an error`);
  that(error.name === name, `${what}: rejected with ${error.name} (${error.message}), expected ${name}`);
  for (const word of words) {
    that(error.message.includes(word), `${what}: its text lacks "${word}": ${error.message}`);
  }
}

function equal(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (a instanceof Uint8Array || b instanceof Uint8Array) {
    if (!(a instanceof Uint8Array && b instanceof Uint8Array) || a.length !== b.length) return false;
    return a.every((byte, i) => byte === b[i]);
  }
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keysOfA = Object.keys(a);
  if (keysOfA.length !== Object.keys(b).length) return false;
  return keysOfA.every(
    (key) =>
      Object.hasOwn(b, key) &&
      equal((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]),
  );
}

function shown(value: unknown): string {
  if (value instanceof Uint8Array) return `${value.length} bytes [${[...value.subarray(0, 24)].join(" ")}]`;
  const text = JSON.stringify(value);
  return text === undefined ? String(value) : text.slice(0, 600);
}
