/**
 * Requests may only ask for what there is: a misspelt parameter, header or method is refused rather than passed over, for whoever sent it counts on it.
 *
 * @module
 */
import type { Context, Hono } from "hono";
import { Refusal } from "./answers.ts";

/** The most names that one refusal tells. */
const MOST_TOLD = 5;
/** Names as somebody would write them. Others could hold anything, and are not told. */
const PLAIN_NAME = /^[A-Za-z0-9_.-]{1,40}$/;

/** Names that were sent, as a refusal tells them: those that are no plain words as `…`. */
function toldNames(names: Iterable<string>): string {
  const told = [...names].slice(0, MOST_TOLD).map((name) => (PLAIN_NAME.test(name) ? name : "…"));
  return [...new Set(told)].join(", ");
}

/** The beginning of what is wrong with names that were sent: `header a: it is`, `headers a, b: they are`. */
export function toldNamed(what: string, names: Iterable<string>): string {
  const given = new Set(names);
  return given.size === 1 ? `${what} ${toldNames(given)}: it is` : `${what}s ${toldNames(given)}: they are`;
}

/**
 * Checks that a request's query has only these parameters, each once.
 *
 * @param instead what the refusal says of a path that knows no parameter.
 * @throws {Refusal} 400, naming those that cannot be used and listing those that can.
 */
export function onlyParameters(c: Context, known: readonly string[], instead = "leave them out"): void {
  const at = c.req.url.indexOf("?");
  if (at < 0) return;
  const given = [...new URLSearchParams(c.req.url.slice(at)).keys()];
  const unknown = given.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    throw new Refusal(
      400,
      "invalid-parameter",
      `Cannot use the ${toldNamed("parameter", unknown)} unknown here; ${known.length === 0 ? instead : `use ${known.join(" and ")}`}`,
    );
  }
  const twice = given.filter((name, i) => given.indexOf(name) < i);
  if (twice.length === 0) return;
  throw new Refusal(
    400,
    "invalid-parameter",
    `Cannot use the ${toldNamed("parameter", twice)} given more than once; give each once`,
  );
}

/** Answers every other method on a path with 405. To be called after the path's own routes are made. */
export function refuseOtherMethods(routes: Hono, path: string, allowed: readonly string[]): void {
  routes.all(path, () => {
    throw new Refusal(
      405,
      "wrong-method",
      `Cannot use this method here: the path does not know it; use ${allowed.join(" or ")}`,
      { allow: allowed },
    );
  });
}

/** The methods of a path that is only looked at; HEAD is GET without a body. */
export const LOOK = ["GET", "HEAD"] as const;
/** The method of a path that does something. */
export const DO = ["POST"] as const;
