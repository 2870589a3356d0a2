/**
 * What hostile tests share: one seed, words that must never come back, and values that break things.
 *
 * `HOSTILE_SEED` plays another seed, `HOSTILE_RUNS` multiplies how many of each kind are tried.
 *
 * @module
 */
import { expect } from "bun:test";
import fc from "fast-check";

const SEED = Number(process.env.HOSTILE_SEED ?? 20_261_130);
const TIMES = Number(process.env.HOSTILE_RUNS ?? 1);
console.log(`hostile: HOSTILE_SEED=${SEED} HOSTILE_RUNS=${TIMES}`);

/** Stands in bodies; may only come back where a body was asked for. */
export const BODY = "canary-body-7d21";
/** Is the secret of whatever needs one; may never come back. */
export const TOKEN = "canary-token-c09f";

/** How each property is tried. */
export function tried(numRuns: number): { readonly seed: number; readonly numRuns: number } {
  return { seed: SEED, numRuns: numRuns * TIMES };
}

/** Checks that a text gives nothing away. */
export function expectNoCanary(text: string): void {
  // The text itself would show in the failure's message in any case: only which is told.
  const told = [BODY, TOKEN].filter((secret) => text.includes(secret));
  expect(told).toEqual([]);
}

/** Arrays within arrays, so many deep. */
export function nested(depth: number): string {
  return "[".repeat(depth) + "]".repeat(depth);
}

const fragment = fc.oneof(
  fc.constantFrom("__proto__", "constructor", "toString", "hasOwnProperty", "then", "length", ""),
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.string({ unit: "grapheme", maxLength: 20 }),
  fc.constantFrom("\r\n", "\u0000", "\ud800", "../", "%2F", "*", ">", "{}", "|", "\u202e", BODY),
);

/** Texts of all kinds, lone surrogates and control characters among them. */
export const text = fc.array(fragment, { maxLength: 4 }).map((parts) => parts.join(""));

/** Valid JSON, with keys that reach into prototypes. */
export const json = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.stringify(value)),
  fc.dictionary(text, fc.jsonValue({ maxDepth: 1 })).map((value) => JSON.stringify(value)),
  fc.constantFrom(
    `{"__proto__":{"polluted":"${BODY}"},"to":"${BODY}"}`,
    `{"constructor":{"prototype":{"polluted":1}},"to":5}`,
    `{"to":"ada@example.com","to":"${BODY}"}`,
    `{"to":"ada@example.com","note":"${BODY}"}`,
    `{"${"k".repeat(20_000)}${BODY}":1}`,
    "1e999",
    "-0",
    `"${BODY}"`,
  ),
  fc.constantFrom(10, 1_000, 50_000).map(nested),
);

/** Bodies: JSON, nearly JSON, any bytes, many lines. */
export const body: fc.Arbitrary<string | Uint8Array<ArrayBuffer>> = fc.oneof(
  json,
  json.map((whole) => `${BODY}${whole}`),
  json.map((whole) => whole.slice(0, -1)),
  fc.array(json, { maxLength: 5 }).map((lines) => lines.join("\n")),
  text.map((some) => `${BODY}${some}`),
  fc.uint8Array({ maxLength: 300 }).map((bytes) => new Uint8Array(bytes)),
  fc
    .uint8Array({ maxLength: 50 })
    .map((bytes) => new Uint8Array([...new TextEncoder().encode(`{"to":"${BODY}`), 0xff, ...bytes])),
);

/** No object may have got a property that was smuggled in. */
export function expectClean(): void {
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
}
