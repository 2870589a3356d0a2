/**
 * What the gateway's command line and environment say. Pure: both are passed in.
 *
 * @module
 */
import { parseArgs } from "node:util";

export const HELP = `Serves Upstash's REST protocol in front of a Redis, for development and tests.

Usage: bun run redis-http [options]

  --redis URL     the Redis, as redis://host:6379 or rediss://user:password@host:6379/0
                  (EDDY_REDIS_URL; default redis://127.0.0.1:6379)
  --port N        port to listen on; 0 for a free one (default 8079)
  --host ADDRESS  address to listen on (default 127.0.0.1)
  --token TOKEN   what requests must bring as "Authorization: Bearer TOKEN"
                  (EDDY_REDIS_HTTP_TOKEN; default: a random one, printed once)
  --help, -h      this text

Put a password or a token into the environment rather than on the command line, where other users can see it.
`;

export type CommandLine =
  | { readonly kind: "help" }
  | { readonly kind: "wrong"; readonly message: string }
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
    if (option === undefined || code === "ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL") {
      return {
        kind: "wrong",
        message: "Cannot read the arguments: one stands without an option; see --help",
      };
    }
    return {
      kind: "wrong",
      message: `Cannot read the arguments: ${option} is unknown or lacks its value; see --help`,
    };
  }
  if (values.help === true) return { kind: "help" };
  const twice = given.find((name, at) => given.indexOf(name) < at);
  if (twice !== undefined) {
    return { kind: "wrong", message: `Cannot read the arguments: --${twice} is given twice; see --help` };
  }
  const empty = Object.entries(values).find(([, value]) => value === "")?.[0];
  if (empty !== undefined) {
    return { kind: "wrong", message: `Cannot read the arguments: --${empty} is empty; see --help` };
  }
  const text = values.port ?? "8079";
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65535) {
    return { kind: "wrong", message: "Cannot read --port: it must be a number from 0 to 65535" };
  }
  // An empty variable counts as not set.
  const token = values.token ?? env.EDDY_REDIS_HTTP_TOKEN;
  return {
    kind: "serve",
    redis: values.redis ?? (env.EDDY_REDIS_URL || "redis://127.0.0.1:6379"),
    port,
    hostname: values.host ?? "127.0.0.1",
    token: token === "" ? undefined : token,
  };
}
