/**
 * `npm run redis-http`: the development gateway as a command.
 *
 * @module
 */
import { randomBytes } from "node:crypto";
import { bunPlatform } from "../platform.ts";
import { scriptOn } from "../start.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { help, readCommandLine } from "./options.ts";
import { parseRedisUrl } from "./redis_url.ts";
import { RedisWatch } from "./redis_watch.ts";

const line = readCommandLine(Bun.argv.slice(2), Bun.env);
if (line.kind === "help") {
  process.stdout.write(help(scriptOn(Bun.env, "redis-http")));
  process.exit(0);
}
if (line.kind === "wrong") {
  process.stderr.write(`${line.message}\n`);
  process.exit(line.code);
}

let gateway: Gateway;
try {
  const token = line.token ?? randomBytes(24).toString("base64url");
  gateway = startGateway({ redis: line.redis, port: line.port, hostname: line.hostname, token });
  process.stdout.write(`Redis over HTTP at ${gateway.url}\n`);
  // The only place where a token is ever printed: nobody else could know this one.
  if (line.token === undefined) process.stdout.write(`Token: ${token}\n`);
} catch (error) {
  const code = (error as { code?: string }).code;
  const why = code === "EADDRINUSE" ? `port ${line.port} is taken; choose another with --port` : undefined;
  process.stderr.write(`Cannot start the gateway: ${why ?? "it could not listen there"}\n`);
  process.exit(1);
}

// A development server's first question is whether its Redis is there: it would else show only in a client's errors.
const watch = new RedisWatch({
  address: parseRedisUrl(line.redis),
  tell: (text) => process.stderr.write(`${text}\n`),
});

bunPlatform().onStop(() => {
  watch.stop();
  gateway.stop().then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
