/**
 * Standard Schema, as far as Eddy uses it: what a validation library must offer to check bodies. Valibot, Zod, ArkType and others do.
 * The interface is the public specification's (standardschema.dev), version 1.
 *
 * @module
 */

export interface SchemaIssue {
  readonly message: string;
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** What is told of a schema that throws or rejects. What it threw could quote the body, so nothing of that is said. */
const SCHEMA_THREW = "The queue's schema threw instead of answering; mend the schema";

/** Why a value does not fit a schema, or nothing when it does. Never throws, whatever the schema does; the text names places, never values. */
export async function whyNot(schema: StandardSchema, value: unknown): Promise<string | undefined> {
  try {
    const result = await schema["~standard"].validate(value);
    return result.issues === undefined ? undefined : describeIssues(result.issues);
  } catch {
    return SCHEMA_THREW;
  }
}

/**
 * Says where a body does not fit, without saying what it holds: paths and the issues' kinds of complaint can quote the value, so only the
 * paths are named, as {@linkcode placeOf} shows them.
 */
export function describeIssues(issues: readonly SchemaIssue[]): string {
  const places = issues.slice(0, 5).map((issue) => placeOf(issue));
  const more = issues.length > 5 ? ` and ${issues.length - 5} more` : "";
  return `The body does not fit the queue's schema at: ${[...new Set(places)].join(", ")}${more}`;
}

/** The longest path that is told, in characters. */
const MAX_PATH_LENGTH = 80;
/** Keys that a schema's author would write. Others may be the sender's data, as the keys of a map are, and are not told. */
const PLAIN_KEY = /^(?:[A-Za-z_$][A-Za-z0-9_$]{0,39}|[0-9]{1,40})$/;

/** The path of an issue, cut at 80 characters; a key that is neither a plain identifier nor an index, of 40 characters at most, is shown as `[…]`. */
export function placeOf(issue: { readonly path?: readonly unknown[] | undefined }): string {
  // No more parts than the longest path could show.
  const path = (issue.path ?? [])
    .slice(0, MAX_PATH_LENGTH)
    .map((part) => {
      const key = typeof part === "object" && part !== null ? (part as { key?: unknown }).key : part;
      const text = typeof key === "string" || typeof key === "number" ? String(key) : "";
      return PLAIN_KEY.test(text) ? text : "[…]";
    })
    .join(".");
  if (path === "") return "the whole body";
  return path.length > MAX_PATH_LENGTH ? `${path.slice(0, MAX_PATH_LENGTH - 1)}…` : path;
}
