/**
 * From what fetch throws, and from what the server answers, to the errors of the port. Pure.
 *
 * A server's texts may quote the command, bodies included, and fetch's carry the address. So nothing of an original error is passed
 * on but what is known to be harmless, and it is never attached as a cause: whoever prints an error prints its cause.
 *
 * @module
 */
import { BrokerError, BrokerRefusedError } from "../../src/errors.ts";

/** The beginnings of server texts that are of use to a reader and can hold nothing of a command. */
const HARMLESS = [
  /^ERR max [a-z ]{1,40} exceeded/,
  /^ERR (?:Cannot reach Redis at \S+|Lost the connection to Redis|Redis did not answer)/,
  /^OOM command not allowed when used memory > 'maxmemory'/,
  /^MISCONF Redis is configured to save RDB snapshots/,
  /^READONLY You can't write against a read only/,
  /^LOADING Redis is loading the dataset in memory/,
  /^BUSY Redis is busy running a script/,
  /^CLUSTERDOWN/,
  /^ERR Redis refuses the connection: (?:ERR DB index is out of range|[A-Z]{1,30}(?= ))/,
  /^HTTP \d{3}$/,
];

/**
 * What is answered before anything is done: a command is refused as it comes, and a script at its first write, if at all. (What is told of a connection
 * is the gateway's: that one was never made.)
 */
const NOTHING_DONE =
  /^(?:OOM|READONLY|MISCONF|LOADING|BUSY|CLUSTERDOWN|NOREPLICAS|ERR max request size|ERR Cannot reach Redis|ERR Redis refuses the connection)\b/;

/** What the server said, as far as it may be repeated: one of the texts above, else the error's code and a script's line. */
export function harmless(text: string): string {
  for (const pattern of HARMLESS) {
    const match = pattern.exec(text);
    if (match !== null) return match[0];
  }
  const code = /^[A-Z][A-Z0-9]{1,30}(?= )/.exec(text)?.[0] ?? "no code";
  const line = /user_script:(\d+)/.exec(text)?.[1];
  return line === undefined ? code : `${code}, line ${line} of the script`;
}

export interface FailureContext {
  readonly verb: string;
  /** Scheme, host and port. */
  readonly origin: string;
  readonly timeoutMs: number;
  readonly timedOut: boolean;
}

/** The port's error for what a request was ended by. */
export function failure(error: unknown, context: FailureContext): BrokerError {
  const { verb, origin, timeoutMs } = context;
  if (error instanceof BrokerError) return error;
  if (context.timedOut) return passing(verb, `${origin} did not answer within ${timeoutMs} ms`);
  const code = (error as { code?: unknown } | null)?.code;
  const shown = typeof code === "string" && /^[A-Za-z_]{1,40}$/.test(code) ? ` (${code})` : "";
  return passing(verb, `${origin} cannot be reached, or broke off${shown}`);
}

/** The port's error for an error that the server answered. */
export function answeredError(verb: string, origin: string, text: string): BrokerError {
  if (/^(?:WRONGPASS|unauthorized)/i.test(text)) return refusedToken(verb, origin);
  if (text.startsWith("NOAUTH")) {
    return new BrokerRefusedError(
      "redis",
      verb,
      `Cannot ${verb}: the Redis behind ${origin} asks for a password; give it to what serves that Redis over HTTP (redis-http takes redis://:PASSWORD@host)`,
    );
  }
  if (text.startsWith("NOPERM")) return refusedRights(verb, origin, "NOPERM");
  // Of a script all before the command that was denied is done: an enqueue may be in the queue.
  if (verb !== "enqueue" && text.includes(DENIED)) return refusedRights(verb, origin, "NOPERM in a script");
  if (text.startsWith("WRONGTYPE")) {
    return passing(
      verb,
      `at ${origin} a key of the queue holds another type than it should (${harmless(text)}); find who wrote it, and remove or rename it`,
    );
  }
  return passing(verb, `${origin} answered an error (${harmless(text)})`, NOTHING_DONE.test(text));
}

/** Whether a status says that the server cannot now, or does not want to be asked so often: the address is right. */
export function isPassing(status: number): boolean {
  return status >= 500 || status === 429;
}

/** Of an answer in somebody else's words, as a proxy's page. */
export function notJson(verb: string, origin: string, status: number): BrokerError {
  if (isPassing(status)) return passing(verb, `${origin} answered an error (HTTP ${status})`);
  return passing(
    verb,
    `${origin} answered what is not JSON (HTTP ${status}); check that url is the REST address`,
  );
}

/** Whether an answer to a request that follows no redirect leads elsewhere. */
export function isRedirect(response: Response): boolean {
  return response.status >= 300 && response.status < 400;
}

/** Where it leads is not told: such an address may hold a secret. */
export function redirected(verb: string, origin: string): BrokerError {
  return passing(
    verb,
    `${origin} redirects elsewhere, where neither the token nor a job is sent; give the address that answers by itself as url`,
  );
}

/** What Redis says within a script of what the user may not do. */
export const DENIED = "The user executing the script can't";

/** @param what which rights are missing. */
export function refusedRights(verb: string, origin: string, what: string): BrokerRefusedError {
  return new BrokerRefusedError(
    "redis",
    verb,
    `Cannot ${verb}: the token may not run what is needed at ${origin} (${what}); give it the rights, or another as the option token`,
  );
}

export function refusedToken(verb: string, origin: string): BrokerRefusedError {
  return new BrokerRefusedError(
    "redis",
    verb,
    `Cannot ${verb}: ${origin} refuses the token; give the right one as the option token (EDDY_BROKER_TOKEN)`,
  );
}

/** Said of an answer that came through but is none of a script of ours. */
export function strange(verb: string, origin: string): BrokerError {
  return passing(
    verb,
    `${origin} answered something that no script of Eddy's answers; check that url leads to a Redis of your own`,
  );
}

function passing(verb: string, why: string, unchanged = false): BrokerError {
  return new BrokerError("redis", verb, `Cannot ${verb}: ${why}`, { unchanged });
}
