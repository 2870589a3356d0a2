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
  const main = fileURLToPath(new URL("./main.ts", import.meta.url));
  // Nothing but the checkout has its tasks.
  const hasTasks = inCheckout();
  return {
    platform: denoPlatform(),
    // Deno came with the checkout's packages, and need not be on the PATH.
    start: hasTasks
      ? { any: "npx deno task eddy", script: (name) => `npx deno task ${name}` }
      : { any: `deno run ${main}` },
    permissionHint: (command, flags) =>
      hasTasks
        ? `To permit it, add it to ${flags} of the task in deno.json, or start \`npx deno run FLAGS runtimes/deno/main.ts ${command}\` with flags of your own.`
        : `To permit it, start \`deno run FLAGS ${main} ${command}\` with it in ${flags}.`,
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
