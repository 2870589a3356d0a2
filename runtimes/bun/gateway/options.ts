/**
 * What the gateway's command line and environment say. Pure: both are passed in.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { isToken } from "../../../src/http/auth.ts";
import { parseRedisUrl } from "./redis_url.ts";

/** The text of `--help`. */
export function help(start: string): string {
  return `Serves Upstash's REST protocol in front of a Redis, for development and tests.

Usage: ${start} [options]

  --redis URL     the Redis, as redis://host:6379 or rediss://user:password@host:6379/0
                  (EDDY_REDIS_URL; default redis://127.0.0.1:6379)
  --port N        port to listen on; 0 for a free one (default 8079)
  --host ADDRESS  address to listen on (default 127.0.0.1)
  --token TOKEN   what requests must bring as "Authorization: Bearer TOKEN"
                  (EDDY_REDIS_HTTP_TOKEN; default: a random one, printed once)
  --help, -h      this text

SIGTERM or SIGINT stops it, a second one at once. A Redis that cannot be reached is told of on standard error, and so is its return.
Exit code: 0 when it was stopped, 1 when it cannot listen there or a variable cannot be used, 2 when it was called wrongly.

Put a password or a token into the environment rather than on the command line, where other users can see it.
`;
}

export type CommandLine =
  | { readonly kind: "help" }
  /** With the exit code: 2 for an argument, 1 for a variable. */
  | { readonly kind: "wrong"; readonly message: string; readonly code: 1 | 2 }
  | {
      readonly kind: "serve";
      readonly redis: string;
      readonly port: number;
      readonly hostname: string;
      /** `undefined` when a random one is to be made. */
      readonly token: string | undefined;
    };

/** Reads the arguments behind the command's name. Never throws, and never repeats a URL or a token. */
export function readCommandLine(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): CommandLine {
  let values: { redis?: string; port?: string; host?: string; token?: string; help?: boolean };
  let given: string[];
  try {
    const parsed = parseArgs({
      args: [...args],
      options: {
        redis: { type: "string" },
        port: { type: "string" },
        host: { type: "string" },
        token: { type: "string" },
        help: { type: "boolean", short: "h" },
      },
      tokens: true,
    });
    values = parsed.values;
    given = parsed.tokens.flatMap((token) => (token.kind === "option" ? [token.name] : []));
  } catch (error) {
    // The parser's text names the option, and quotes a stray argument: that may be a token typed without its option.
    const code = (error as { code?: string }).code;
    const option = /'(--?[a-z-]+)/.exec(error instanceof Error ? error.message : "")?.[1];
    return option === undefined || code === "ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL"
      ? misread("one stands without an option")
      : misread(`${option} is unknown or lacks its value`);
  }
  if (values.help === true) return { kind: "help" };
  const twice = given.find((name, at) => given.indexOf(name) < at);
  if (twice !== undefined) return misread(`--${twice} is given twice`);
  const empty = Object.entries(values).find(([, value]) => value === "")?.[0];
  if (empty !== undefined) return misread(`--${empty} is empty`);
  const port = values.port ?? "8079";
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65535) {
    return misread("--port does not fit; give a number from 0 to 65535");
  }
  // An empty variable counts as not set.
  const redis = values.redis ?? (env.EDDY_REDIS_URL || "redis://127.0.0.1:6379");
  const unusable = whyNoRedis(redis);
  if (unusable !== undefined) {
    return { kind: "wrong", message: unusable, code: values.redis === undefined ? 1 : 2 };
  }
  const token = values.token ?? (env.EDDY_REDIS_HTTP_TOKEN || undefined);
  if (token !== undefined && !isToken(token)) {
    const message =
      "Cannot start the gateway: token has a space or a character outside ASCII, so no header can carry it; give printable ASCII without space";
    return { kind: "wrong", message, code: values.token === undefined ? 1 : 2 };
  }
  return { kind: "serve", redis, port: Number(port), hostname: values.host ?? "127.0.0.1", token };
}

function misread(is: string): CommandLine {
  return { kind: "wrong", message: `Cannot read the arguments: ${is}; see --help`, code: 2 };
}

function whyNoRedis(url: string): string | undefined {
  try {
    parseRedisUrl(url);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
