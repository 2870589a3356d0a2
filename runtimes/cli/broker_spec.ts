/**
 * Which broker a command uses: from a flag and the environment to a description of it. Pure.
 *
 * @module
 */

/** A broker, described. */
export type BrokerSpec =
  | { readonly kind: "memory" }
  | { readonly kind: "sqlite"; readonly file: string }
  | { readonly kind: "redis"; readonly url: string; readonly token: string }
  | { readonly kind: "nats"; readonly url: string; readonly login: NatsLogin };

/** How to log in to NATS: with at most one of a token, a user, an nkey and a credentials file. */
export interface NatsLogin {
  readonly token?: string;
  readonly user?: string;
  readonly password?: string;
  /** The seed of a user's nkey. */
  readonly nkeySeed?: string;
  /** The path of a credentials file. */
  readonly credentialsFile?: string;
}

/** The broker when nothing names one. */
export const DEFAULT_BROKER = "sqlite:eddy.sqlite";

type Env = Readonly<Record<string, string | undefined>>;

/** What {@linkcode chooseBroker} throws: a RangeError that tells what is at fault. */
export class UnusableBroker extends RangeError {
  /** Where the fault is: in the argument, or in the environment (a variable's broker, or a token that is missing there). */
  readonly at: "flag" | "environment";

  constructor(message: string, at: "flag" | "environment") {
    super(message);
    this.at = at;
  }
}

/** Refuses a broker's name: what it is, and how to mend it. */
type Refuse = (is: string, mend: string) => never;

/**
 * Chooses the broker: the flag, else `EDDY_BROKER`, else `UPSTASH_REDIS_REST_URL`, else {@linkcode DEFAULT_BROKER}. An empty variable counts as not set.
 *
 * @throws {RangeError} "Cannot use the broker: its name is …; …" or "… : EDDY_BROKER is …; …", with nothing of a URL's credentials in it.
 */
export function chooseBroker(flag: string | undefined, env: Env): BrokerSpec {
  const upstashUrl = env.UPSTASH_REDIS_REST_URL || undefined;
  const upstashToken = env.UPSTASH_REDIS_REST_TOKEN || undefined;
  const eddyToken = env.EDDY_BROKER_TOKEN || undefined;
  const named = flag ?? (env.EDDY_BROKER || undefined);
  if (named === undefined && upstashUrl !== undefined) {
    const refuse: Refuse = refusing("UPSTASH_REDIS_REST_URL");
    return overHttp(upstashUrl, upstashToken ?? eddyToken, "UPSTASH_REDIS_REST_TOKEN", refuse);
  }
  const refuse: Refuse = refusing(flag === undefined ? "EDDY_BROKER" : undefined);
  const text = named ?? DEFAULT_BROKER;
  if (text === "memory:" || text === "memory") return { kind: "memory" };
  if (text.startsWith("sqlite:")) {
    const file = text.slice("sqlite:".length);
    if (file === "") refuse("no file", "write sqlite:FILE");
    // SQLite's own words for other places than a file of that name.
    if (file === ":memory:" || file.startsWith("file:")) {
      refuse("no path of a file", "write sqlite:FILE, or memory: for jobs that need not be kept");
    }
    return { kind: "sqlite", file };
  }
  if (/^https?:/i.test(text)) {
    // Upstash's token goes to Upstash's URL only, however the broker was named.
    const same = upstashUrl !== undefined && sameUrl(upstashUrl, text);
    return overHttp(text, eddyToken ?? (same ? upstashToken : undefined), "EDDY_BROKER_TOKEN", refuse);
  }
  if (/^rediss?:/i.test(text)) {
    refuse(
      "a Redis address",
      "Eddy speaks to Redis over HTTP: start `npm run redis-http` in Eddy's checkout in front of it and name its URL",
    );
  }
  if (/^wss?:/i.test(text)) return { kind: "nats", url: overWebSocket(text, refuse), login: natsLogin(env) };
  if (/^nats:/i.test(text)) {
    refuse(
      "a NATS address of the plain protocol",
      "Eddy speaks to NATS over WebSocket: name its WebSocket listener, as in ws://HOST:PORT or wss://HOST",
    );
  }
  refuse("of no known kind", "write sqlite:FILE, memory:, an https:// URL (Redis) or a wss:// URL (NATS)");
}

function overHttp(text: string, token: string | undefined, variable: string, refuse: Refuse): BrokerSpec {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    refuse("a malformed URL", "write https://HOST or http://HOST:PORT");
  }
  if (url.username !== "" || url.password !== "") {
    refuse("a URL with credentials in it", `put the token into ${variable} and leave it out of the URL`);
  }
  // The URL is good, whoever named it: it is the environment that lacks something.
  if (token === undefined) {
    // Upstash's variable can mean no other broker.
    const other = variable === "EDDY_BROKER_TOKEN" ? ", or write ws:// or wss:// if NATS is meant" : "";
    throw new UnusableBroker(
      cannotUse("its name", "a URL without a token", `set ${variable}${other}`),
      "environment",
    );
  }
  return { kind: "redis", url: url.href.replace(/\/$/, ""), token };
}

function overWebSocket(text: string, refuse: Refuse): string {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    refuse("a malformed URL", "write wss://HOST or ws://HOST:PORT");
  }
  if (url.username !== "" || url.password !== "") {
    refuse(
      "a URL with credentials in it",
      "put them into EDDY_NATS_USER and EDDY_NATS_PASSWORD and leave them out of the URL",
    );
  }
  if (url.hash !== "") refuse("a URL with a fragment (#…) in it", "leave it out");
  return url.href.replace(/\/$/, "");
}

/** A credentials file before an nkey, that before a user, a user before a token: the most particular one that is set. */
function natsLogin(env: Env): NatsLogin {
  const credentialsFile = env.EDDY_NATS_CREDS || undefined;
  const nkeySeed = env.EDDY_BROKER_NKEY_SEED || undefined;
  const user = env.EDDY_NATS_USER || undefined;
  const password = env.EDDY_NATS_PASSWORD || undefined;
  const token = env.EDDY_BROKER_TOKEN || undefined;
  if (credentialsFile !== undefined) return { credentialsFile };
  if (nkeySeed === undefined && user === undefined && password !== undefined) {
    throw new UnusableBroker(
      cannotUse("EDDY_NATS_PASSWORD", "set without EDDY_NATS_USER", "set both or none"),
      "environment",
    );
  }
  const used =
    nkeySeed !== undefined
      ? { EDDY_BROKER_NKEY_SEED: nkeySeed }
      : user === undefined
        ? { EDDY_BROKER_TOKEN: token }
        : { EDDY_NATS_USER: user, EDDY_NATS_PASSWORD: password };
  for (const [variable, value] of Object.entries(used)) {
    if (value === undefined || value === value.trim()) continue;
    throw new UnusableBroker(
      cannotUse(variable, "a text that begins or ends with white space", "take that away"),
      "environment",
    );
  }
  if (nkeySeed !== undefined) return { nkeySeed };
  if (user !== undefined) return { user, password: password ?? "" };
  return token === undefined ? {} : { token };
}

/** What is told where a NATS server does not let this login in: by the variables that hold it, for the adapter knows none. */
export function loginRefused({ url, login }: BrokerSpec & { readonly kind: "nats" }): string {
  const [is, mend] = loginFault(login);
  return `Cannot log in at ${new URL(url).origin}: the server refuses ${is}; ${mend}`;
}

const USER_LOGINS = "EDDY_NATS_CREDS, or EDDY_BROKER_NKEY_SEED, or EDDY_NATS_USER and EDDY_NATS_PASSWORD";

function loginFault(login: NatsLogin): [is: string, mend: string] {
  const { token, user, password, nkeySeed, credentialsFile } = login;
  if (credentialsFile !== undefined) {
    return ["what EDDY_NATS_CREDS names", "name the file of another user's credentials"];
  }
  if (nkeySeed !== undefined) return ["EDDY_BROKER_NKEY_SEED", "set the seed of a user it knows"];
  if (user !== undefined && password === "") {
    return ["EDDY_NATS_USER without a password", "set EDDY_NATS_PASSWORD"];
  }
  if (user !== undefined) return ["EDDY_NATS_USER and EDDY_NATS_PASSWORD", "set them to a user it knows"];
  if (token !== undefined) return ["EDDY_BROKER_TOKEN", `set the right one, or ${USER_LOGINS}`];
  return ["whoever does not log in", `set ${USER_LOGINS}, or EDDY_BROKER_TOKEN`];
}

function sameUrl(a: string, b: string): boolean {
  try {
    return new URL(a).href === new URL(b).href;
  } catch {
    return false;
  }
}

/** A broker as it may be shown: without credentials, path or query. */
export function describeBroker(spec: BrokerSpec): string {
  switch (spec.kind) {
    case "memory":
      return "memory:";
    case "sqlite":
      return `sqlite:${spec.file}`;
    case "redis":
    case "nats":
      return new URL(spec.url).origin;
  }
}

/** How a name is refused that this variable holds; the argument holds it when there is none. */
function refusing(variable: string | undefined): Refuse {
  return (is, mend) => {
    const at = variable === undefined ? "flag" : "environment";
    throw new UnusableBroker(cannotUse(variable ?? "its name", is, mend), at);
  };
}

function cannotUse(what: string, is: string, mend: string): string {
  return `Cannot use the broker: ${what} is ${is}; ${mend}`;
}
