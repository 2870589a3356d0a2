/**
 * What Eddy's commands need of Bun.
 *
 * @module
 */
import { inCheckout } from "../cli/checkout.ts";
import type { Shell } from "../cli/shell.ts";
import { serveHttp } from "./http_server.ts";
import { bunPlatform } from "./platform.ts";
import { startOn } from "./start.ts";

/** Makes the Shell of a Bun process. */
export function bunShell(): Shell {
  return {
    // A project that has Eddy as a dependency has the command of the package, and none of the checkout's scripts.
    start: startOn(process.env, inCheckout()),
    platform: bunPlatform(),
    stdin: () => Bun.stdin.stream() as unknown as AsyncIterable<Uint8Array>,
    sqlite: openSqlite,
    serve: serveHttp,
  };
}

/** The embedded database in a file. Loads the driver; opens nothing. */
export async function openSqlite(file: string) {
  const { bunSqlite } = await import("../../adapters/sqlite/bun_driver.ts");
  return bunSqlite({ file });
}
