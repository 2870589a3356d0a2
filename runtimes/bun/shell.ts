/**
 * What Eddy's commands need of Bun.
 *
 * @module
 */
import { inCheckout } from "../cli/checkout.ts";
import type { Shell } from "../cli/shell.ts";
import { serveHttp } from "./http_server.ts";
import { bunPlatform } from "./platform.ts";

/** Makes the Shell of a Bun process. */
export function bunShell(): Shell {
  // A project that has Eddy as a dependency has the command of the package, and none of the checkout's scripts.
  const words = inCheckout()
    ? {
        start: { any: "bun run eddy", scripts: "bun run" },
        hint: "With npm: npm run eddy -- COMMAND [flags].",
      }
    : { start: { any: "npx eddy" } };
  return {
    ...words,
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
