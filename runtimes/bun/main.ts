#!/usr/bin/env bun
/**
 * Eddy's commands on Bun: `bun runtimes/bun/main.ts COMMAND`.
 *
 * @module
 */
import { main } from "../cli/main.ts";
import { bunShell } from "./shell.ts";

await main(bunShell());
