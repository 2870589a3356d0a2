/**
 * Where a command was started: in Eddy's own checkout, with its scripts, tasks and examples, or in somebody's project.
 *
 * @module
 */
import { resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** The folder of Eddy's package.json and deno.json. */
const ROOT = resolve(fileURLToPath(new URL("../../", import.meta.url)));

/** Whether the current folder is Eddy's own. False as well where it cannot be told. */
export function inCheckout(): boolean {
  try {
    return process.cwd() === ROOT;
  } catch {
    // The folder was removed, or Deno does not let this program know it.
    return false;
  }
}
