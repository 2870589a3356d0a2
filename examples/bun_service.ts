/**
 * The service of `service.ts` on Bun.
 *
 * ```sh
 * node_modules/.bin/bun examples/bun_service.ts
 * curl -d '{"email":"ada@example.com"}' http://127.0.0.1:8787/signup
 * ```
 *
 * Its broker is named by `EDDY_BROKER` as for the commands, its address by `ADDRESS` (127.0.0.1:8787 without it), the token of its API by
 * `EDDY_HTTP_TOKEN`.
 *
 * @module
 */
import process from "node:process";
import {
  bunPlatform,
  chooseBroker,
  isLoopback,
  openBroker,
  parseAddress,
  serveHttp,
} from "../runtimes/bun/mod.ts";
import { jsonLog, startService } from "./service.ts";

const { env } = process;
const address = parseAddress(env.ADDRESS ?? "127.0.0.1:8787");
const token = env.EDDY_HTTP_TOKEN;
if (token === undefined && !isLoopback(address)) {
  throw new RangeError(
    "Cannot serve: ADDRESS is no loopback address and there is no token; set EDDY_HTTP_TOKEN",
  );
}
const platform = bunPlatform();
const broker = await openBroker(chooseBroker(undefined, env), platform);
const service = await startService({ broker, platform, log: jsonLog, token });
const server = serveHttp(address, service.fetch);
jsonLog("info", "Serving", { url: server.url });

// SIGTERM and SIGINT: running jobs finish, the others go back; then requests do; then the broker is left.
platform.onStop((reason) => void service.running.stop(reason));
await service.running.done;
await server.stop(1_000);
await broker.close();
