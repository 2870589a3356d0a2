/**
 * Options from callers without types: a misspelt name must not be swallowed, for then its default would rule unseen.
 *
 * @module
 */

/**
 * Checks that a group of options is an object and has no field but known ones.
 *
 * @param what what cannot be done otherwise: "drain", "start a worker".
 * @param group the name of the group among the options; "" for the options themselves.
 * @throws {TypeError} "Cannot WHAT: FIELD is no option; use some of …".
 */
export function assertKnownFields(
  what: string,
  group: string,
  value: unknown,
  known: ReadonlySet<string>,
): void {
  if (typeof value !== "object" || value === null) {
    const kind = value === null || value === undefined ? `${value}` : `a ${typeof value}`;
    throw new TypeError(
      `Cannot ${what}: ${group === "" ? "the second argument" : group} is ${kind}; give an object of ${[...known].join(", ")}`,
    );
  }
  for (const name of Object.keys(value)) {
    if (known.has(name)) continue;
    // A name of any length may come in here; the first of it will do.
    const field = `${group === "" ? "" : `${group}.`}${name.slice(0, 100)}`;
    throw new TypeError(`Cannot ${what}: ${field} is no option; use some of ${[...known].join(", ")}`);
  }
}
