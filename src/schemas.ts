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
export const SCHEMA_THREW = "The queue's schema threw instead of answering; mend the schema";

/** What is told of one that answers otherwise than the specification has it, as with yes or no: taken for a yes it would let any body through. */
const SCHEMA_ODD = "The queue's schema answered with neither a value nor issues; mend the schema";

/** What a schema's answer says against a body; nothing when the body fits. May throw what reading the answer throws. */
export function complaintOf(result: SchemaResult<unknown>): string | undefined {
  if (result.issues !== undefined) return describeIssues(result.issues);
  return typeof result === "object" && "value" in result ? undefined : SCHEMA_ODD;
}

/** One place where a body does not fit. */
export interface BodyIssue {
  /** Keys and indices, joined by dots: `lines.3.price`. Empty for the whole body; a key that could be the sender's data is shown as `[…]`. */
  readonly path: string;
  /** What is wrong there. Tells no value: a schema's own messages may quote what they complain of, so they are not passed on. */
  readonly message: string;
}

/** Why a body does not fit, in a sentence, and where. Neither tells a value. */
export interface BodyFault {
  readonly reason: string;
  readonly issues: readonly BodyIssue[];
}

/** The most issues that are told of one body. */
const MOST_ISSUES = 20;

/** Why a value does not fit a schema, or nothing when it does. Never throws, whatever the schema does; the texts name places, never values. */
export async function whyNot(schema: StandardSchema, value: unknown): Promise<BodyFault | undefined> {
  try {
    const result = await schema["~standard"].validate(value);
    const reason = complaintOf(result);
    if (reason === undefined) return undefined;
    const paths = new Set((result.issues ?? []).slice(0, MOST_ISSUES).map(pathOf));
    // Without a place it is the whole body's.
    if (paths.size === 0) return { reason, issues: [{ path: "", message: reason }] };
    const issues = [...paths].map((path) => ({ path, message: "It does not fit the queue's schema" }));
    return { reason, issues };
  } catch {
    return { reason: SCHEMA_THREW, issues: [{ path: "", message: SCHEMA_THREW }] };
  }
}

/**
 * Says where a body does not fit, without saying what it holds: paths and the issues' kinds of complaint can quote the value, so only the
 * paths are named, as {@linkcode placeOf} shows them.
 */
export function describeIssues(issues: readonly SchemaIssue[]): string {
  // A schema may find fault without saying where.
  const places = issues.length === 0 ? [placeOf({})] : issues.slice(0, 5).map((issue) => placeOf(issue));
  const more = issues.length > 5 ? ` and ${issues.length - 5} more` : "";
  return `The body does not fit the queue's schema at: ${[...new Set(places)].join(", ")}${more}`;
}

/** What of an issue is looked at. */
type Issue = { readonly path?: readonly unknown[] | undefined };

/** The longest path that is told, in characters. */
const MAX_PATH_LENGTH = 80;
/** Keys that a schema's author would write. Others may be the sender's data, as the keys of a map are, and are not told. */
const PLAIN_KEY = /^(?:[A-Za-z_$][A-Za-z0-9_$]{0,39}|[0-9]{1,40})$/;

/** An issue's place as a sentence names it. */
export function placeOf(issue: Issue): string {
  return pathOf(issue) || "the whole body";
}

/** The path of an issue, cut at 80 characters; a key that is neither a plain identifier nor an index, of 40 characters at most, is shown as `[…]`. Empty for the whole body. */
function pathOf(issue: Issue): string {
  // No more parts than the longest path could show.
  const path = (issue.path ?? [])
    .slice(0, MAX_PATH_LENGTH)
    .map((part) => {
      const key = typeof part === "object" && part !== null ? (part as { key?: unknown }).key : part;
      const text = typeof key === "string" || typeof key === "number" ? String(key) : "";
      return PLAIN_KEY.test(text) ? text : "[…]";
    })
    .join(".");
  return path.length > MAX_PATH_LENGTH ? `${path.slice(0, MAX_PATH_LENGTH - 1)}…` : path;
}
