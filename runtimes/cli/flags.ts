/**
 * Command-line flags, described once: parsing and `--help` both come from the description.
 *
 * @module
 */
import { parseArgs } from "node:util";

/** The command was called wrongly. Exit code 2. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** One flag. */
export type Flag =
  /** There or not. */
  | { readonly kind: "switch"; readonly help: string }
  /** A text; `value` is what the help calls it. */
  | { readonly kind: "text"; readonly value: string; readonly default?: string; readonly help: string }
  /** One of some words. */
  | {
      readonly kind: "choice";
      readonly of: readonly string[];
      readonly default?: string;
      readonly help: string;
    }
  /** A whole number from `least` on, in `unit`, which is empty where it counts nothing. */
  | {
      readonly kind: "count";
      readonly unit: string;
      readonly least: number;
      readonly default?: number;
      readonly help: string;
    }
  /** A text that may be given several times; with `of` each is one of these. */
  | {
      readonly kind: "list";
      readonly value: string;
      readonly of?: readonly string[];
      readonly help: string;
    };

export type Flags = Readonly<Record<string, Flag>>;

type ValueOf<F extends Flag> = F extends { kind: "switch" }
  ? boolean
  : F extends { kind: "list" }
    ? readonly string[]
    : F extends { default: infer D }
      ? D extends number
        ? number
        : string
      : F extends { kind: "count" }
        ? number | undefined
        : string | undefined;

export type FlagValues<F extends Flags> = { readonly [Name in keyof F]: ValueOf<F[Name]> };

export interface ParsedArgs<F extends Flags> {
  readonly flags: FlagValues<F>;
  readonly positionals: readonly string[];
}

/**
 * Reads arguments.
 *
 * @throws {UsageError} naming the flag that is unknown or does not fit; never its value, which could be a secret.
 */
export function parseFlags<F extends Flags>(flags: F, args: readonly string[]): ParsedArgs<F> {
  const { tokens, positionals } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      Object.entries(flags).map(([name, flag]) => [
        name,
        { type: flag.kind === "switch" ? "boolean" : "string" },
      ]),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const given = new Map<string, string[]>();
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const flag = Object.hasOwn(flags, token.name) ? flags[token.name] : undefined;
    // It may be a body, of which nothing is printed.
    if (flag === undefined && /^-\d/.test(token.rawName)) {
      throw new UsageError(
        "Cannot read the arguments: a negative number reads as a flag; write -- before it, behind the flags",
      );
    }
    if (flag === undefined) throw new UsageError(`Cannot read the arguments: ${token.rawName} is unknown`);
    if (flag.kind === "switch") {
      if (token.value !== undefined)
        throw new UsageError(`Cannot read the arguments: --${token.name} takes no value`);
      given.set(token.name, []);
      continue;
    }
    // "--limit --json" is a forgotten value; whoever means a value that looks like a flag writes "--limit=--json".
    if (token.value === undefined || (token.inlineValue !== true && token.value.startsWith("--"))) {
      throw new UsageError(`Cannot read the arguments: --${token.name} needs a value`);
    }
    // An unset variable of a script, more often than not.
    if (token.value === "") throw new UsageError(`Cannot read the arguments: --${token.name} is empty`);
    const values = given.get(token.name) ?? [];
    if (values.length > 0 && flag.kind !== "list") {
      throw new UsageError(`Cannot read the arguments: --${token.name} is given twice`);
    }
    given.set(token.name, [...values, token.value]);
  }
  const values = Object.entries(flags).map(([name, flag]) => [name, readValue(name, flag, given.get(name))]);
  return { flags: Object.fromEntries(values) as FlagValues<F>, positionals };
}

function readValue(name: string, flag: Flag, given: readonly string[] | undefined): unknown {
  if (flag.kind === "switch") return given !== undefined;
  if (flag.kind === "list") {
    for (const text of given ?? []) assertOneOf(name, flag.of, text);
    return given ?? [];
  }
  const text = given?.[0];
  if (text === undefined) return flag.default;
  if (flag.kind === "count") {
    const number = Number(text);
    if (!/^\d+$/.test(text) || !Number.isSafeInteger(number) || number < flag.least) {
      throw new UsageError(
        `Cannot read the arguments: --${name} does not fit; give a whole number from ${flag.least} on`,
      );
    }
    return number;
  }
  if (flag.kind === "choice") assertOneOf(name, flag.of, text);
  return text;
}

function assertOneOf(name: string, words: readonly string[] | undefined, text: string): void {
  if (words === undefined || words.includes(text)) return;
  throw new UsageError(`Cannot read the arguments: --${name} does not fit; give one of ${words.join(", ")}`);
}
