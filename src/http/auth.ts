/**
 * Who may use the HTTP app.
 *
 * @module
 */
import type { MiddlewareHandler } from "hono";
import { Refusal } from "./answers.ts";

export interface GuardOptions {
  /** The secret that callers send as `Authorization: Bearer …`. */
  readonly token?: string | undefined;
  /** Whether callers must send it. Only an app that is bound to a loopback address can do without. */
  readonly requireToken: boolean;
}

/** Whether a text can be sent as a Bearer token: printable ASCII without space. Any other would arrive as something else, or not at all. */
export function isToken(text: string): boolean {
  return /^[!-~]+$/.test(text);
}

/**
 * Checks a token before anything is served, for one that nobody can send would refuse everybody.
 *
 * @throws {TypeError} when there is none, or it is not printable ASCII without space. The text does not repeat it.
 */
export function assertToken(token: string | undefined): asserts token is string {
  if (token === undefined || token === "") {
    throw new TypeError("Cannot serve HTTP: the token is empty; give one, or bind to a loopback address");
  }
  if (isToken(token)) return;
  throw new TypeError(
    "Cannot serve HTTP: the token has a space or a character outside ASCII, so no header can carry it; give printable ASCII without space (EDDY_HTTP_TOKEN)",
  );
}

/**
 * Lets a request through when it may pass, else refuses it: 401 without the right token, 403 for a web page's request to an app without one.
 *
 * @throws {TypeError} when a token is required and none is given, or one that nobody can send.
 */
export function guard(options: GuardOptions): MiddlewareHandler {
  if (!options.requireToken) {
    return async (c, next) => {
      assertFromThisMachine(c.req.url, c.req.header("origin"));
      await next();
    };
  }
  assertToken(options.token);
  const matches = tokenMatcher(options.token);
  return async (c, next) => {
    const given = /^Bearer +(\S+)\s*$/i.exec(c.req.header("authorization") ?? "")?.[1];
    if (given === undefined || !(await matches(given))) {
      throw new Refusal(
        401,
        "unauthorized",
        "Cannot let the request in: its Bearer token is missing or wrong",
      );
    }
    await next();
  };
}

/**
 * Compares in a time that tells nothing of the token: both are hashed, so lengths are equal and a prefix found by luck says nothing, and every byte
 * of the hashes is looked at.
 */
export function tokenMatcher(token: string): (given: string) => Promise<boolean> {
  // Made at the first request: some runtimes allow no such work before one.
  let expected: Promise<Uint8Array> | undefined;
  return async (given) => {
    expected ??= sha256(token);
    const [a, b] = await Promise.all([expected, sha256(given)]);
    let difference = a.length ^ b.length;
    for (let i = 0; i < a.length; i += 1) difference |= a[i]! ^ (b[i] ?? 0);
    return difference === 0;
  };
}

async function sha256(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
}

/**
 * An app without a token trusts whoever reaches the loopback address. A browser on this machine reaches it too, on behalf of any page it shows, so what a
 * page of another origin sends, or one that had its name point here, is refused.
 */
function assertFromThisMachine(url: string, origin: string | undefined): void {
  if (!URL.canParse(url)) {
    throw new Refusal(
      400,
      "invalid-host",
      "Cannot read the request: its Host header is missing or malformed",
    );
  }
  const fromPage = origin !== undefined && !isLoopbackOrigin(origin);
  if (fromPage || !isLoopbackHost(new URL(url).hostname)) {
    throw new Refusal(
      403,
      "not-loopback",
      "Cannot let the request in: it was not made by a program on this machine; set a token to serve others",
    );
  }
}

function isLoopbackOrigin(origin: string): boolean {
  try {
    return isLoopbackHost(new URL(origin).hostname);
  } catch {
    return false;
  }
}

/** Whether a host name means this machine only: `localhost`, `127.0.0.0/8`, `::1`. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  if (name === "localhost" || name === "::1") return true;
  return /^127(\.\d{1,3}){3}$/.test(name);
}
