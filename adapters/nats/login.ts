/**
 * How a connection logs in: which of the options say it, whether they can, and what the client library is given for it. All of it is checked when the broker is
 * made: on the way to a server a text that is no seed would look like a server that cannot be reached, or that refuses a user.
 *
 * @module
 */
import {
  type Authenticator,
  jwtAuthenticator,
  nkeyAuthenticator,
  nkeys,
  tokenAuthenticator,
  usernamePasswordAuthenticator,
} from "nats.ws";
import { kindOf } from "../../src/known_fields.ts";

/** One of them, or none where the server lets everybody in. */
export interface LoginOptions {
  /** A token. */
  readonly token?: string | undefined;
  /** A user and a password. */
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /** The seed of an nkey (`SU…`). */
  readonly nkeySeed?: string | undefined;
  /** The text of a credentials file (JWT and seed). */
  readonly credentials?: string | undefined;
}

const FIELDS = ["token", "user", "password", "nkeySeed", "credentials"] as const;

/** A line above or below a JWT or a seed in a credentials file. */
const FENCE = /^-{3,}.*-{3,}$/;
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/**
 * What logs in as the options say; `undefined` where they name nobody.
 *
 * @throws {TypeError} "Cannot use the NATS broker: FIELD …" when they cannot be used; the text repeats none of them.
 */
export function readLogin(options: LoginOptions): Authenticator | undefined {
  for (const field of FIELDS) {
    const value = options[field];
    if (value === undefined) continue;
    if (typeof value !== "string") refuse(`${field} is ${kindOf(value)}; give it as a text, or leave it out`);
    // A user may have no password.
    if (value === "" && field !== "password") refuse(`${field} is empty; give it, or leave it out`);
    // A file's last line end, more often than not; the server would only say that it is wrong.
    if (field !== "credentials" && value !== value.trim()) {
      refuse(`${field} begins or ends with white space; take that away`);
    }
  }
  const { token, user, password, nkeySeed, credentials } = options;
  if ((user === undefined) !== (password === undefined)) {
    refuse("user and password are not both given; give both or none");
  }
  if ([token, user, nkeySeed, credentials].filter((way) => way !== undefined).length > 1) {
    refuse("there is more than one of token, user, nkeySeed and credentials; give one");
  }
  if (token !== undefined) return tokenAuthenticator(token);
  if (user !== undefined) return usernamePasswordAuthenticator(user, password ?? "");
  if (nkeySeed !== undefined) {
    if (!isUserSeed(nkeySeed))
      refuse("nkeySeed is no seed of a user's nkey; give the text that begins with SU");
    return nkeyAuthenticator(bytesOf(nkeySeed));
  }
  if (credentials === undefined) return undefined;
  const found = readCredentials(credentials);
  if (found === undefined) {
    refuse(
      "credentials is no credentials file's text (no JWT and seed in it); give what the file holds, not its path",
    );
  }
  return jwtAuthenticator(found.jwt, bytesOf(found.seed));
}

/** The user's JWT and seed in the text of a credentials file; `undefined` where it is none. */
export function readCredentials(text: string): { readonly jwt: string; readonly seed: string } | undefined {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const isFence = (at: number) => FENCE.test(lines[at] ?? "");
  const fenced = lines.filter((_line, at) => isFence(at - 1) && !isFence(at) && isFence(at + 1));
  const jwt = fenced.find((line) => JWT.test(line));
  const seed = fenced.find(isUserSeed);
  return jwt === undefined || seed === undefined ? undefined : { jwt, seed };
}

/** Whether it is a user's seed, its checksum included. */
export function isUserSeed(text: string): boolean {
  if (!text.startsWith("SU")) return false;
  try {
    nkeys.fromSeed(bytesOf(text));
    return true;
  } catch {
    return false;
  }
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function refuse(why: string): never {
  throw new TypeError(`Cannot use the NATS broker: ${why}`);
}
