/**
 * What Eddy's commands need of Deno.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import { inCheckout } from "../cli/checkout.ts";
import type { Shell } from "../cli/shell.ts";
import { serveHttp } from "./http_server.ts";
import { denoPlatform } from "./platform.ts";

/** Makes the Shell of a Deno process. */
export function denoShell(): Shell {
  return {
    platform: denoPlatform(),
    // Nothing but the checkout has its tasks.
    start: inCheckout()
      ? { any: "deno task eddy", scripts: "deno task" }
      : { any: `deno run ${fileURLToPath(new URL("./main.ts", import.meta.url))}` },
    stdin: () => Deno.stdin.readable,
    sqlite: openSqlite,
    serve: serveHttp,
  };
}

/** The embedded database in a file. Loads the driver; opens nothing. */
export async function openSqlite(file: string) {
  const { nodeSqlite } = await import("../../adapters/sqlite/node_driver.ts");
  return nodeSqlite({ file });
}
