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
 * @throws {TypeError} "Cannot WHAT: FIELD is no option; use some of …", or "Cannot WHAT: GROUP is …; give an object of …".
 */
export function assertKnownFields(
  what: string,
  group: string,
  value: unknown,
  known: ReadonlySet<string>,
): void {
  if (!isRecord(value)) {
    throw new TypeError(
      `Cannot ${what}: ${group === "" ? "options" : group} is ${kindOf(value)}; give an object of ${[...known].join(", ")}`,
    );
  }
  for (const name of Object.keys(value)) {
    if (known.has(name)) continue;
    // A name of any length may come in here; the first of it will do.
    const field = `${group === "" ? "" : `${group}.`}${name.slice(0, 100)}`;
    throw new TypeError(`Cannot ${what}: ${field} is no option; use some of ${[...known].join(", ")}`);
  }
}

/** Whether a value is an object of named fields. A list, a `Map` or `Headers` has its entries elsewhere: read as fields, they would be lost or renamed. */
export function isRecord(value: unknown): value is object {
  return typeof value === "object" && value !== null && !(Symbol.iterator in value);
}

/** What a value of the wrong kind is, for an error's text, which never repeats the value: `null`, `an array`, `a number`. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return `${value}`;
  if (Array.isArray(value)) return "an array";
  if (typeof value !== "object") return `a ${typeof value}`;
  const name = Symbol.iterator in value ? value.constructor?.name : undefined;
  return name !== undefined && /^[A-Za-z]{1,40}$/.test(name) ? `a ${name}` : "an object";
}
