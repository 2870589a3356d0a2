/**
 * Eddy's commands on Deno: `deno task worker`, and so on. The permissions each needs are in deno.json.
 *
 * @module
 */
import { main } from "../cli/main.ts";
import { denoShell } from "./shell.ts";

await main(denoShell());
