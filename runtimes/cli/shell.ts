/**
 * What the commands ask of the runtime they run on, beyond the Platform. Everything else they do with what Bun and Deno have
 * in common: `node:process`, `node:fs`, `node:path` and `node:util`.
 *
 * @module
 */
import type { SqlSource } from "../../adapters/sqlite/mod.ts";
import type { Platform } from "../../src/platform.ts";
import type { Address, FetchHandler, HttpServer } from "./address.ts";

/** What people type to start a command. */
export interface Start {
  /** What stands before any command's name: `"npx eddy"`. */
  readonly any: string;
  /** How a command is started that has a script of its own, where there are scripts: `bun run NAME`. Flags stand behind it. */
  script?(name: string): string;
}

export interface Shell {
  readonly platform: Platform;
  /** How commands are started in the current folder. */
  readonly start: Start;
  /**
   * How a permission is given that the runtime refused, where it has such.
   *
   * @param flags what permits it, as `"--allow-read"`.
   */
  permissionHint?(command: string, flags: string): string;
  /** Standard input, read as fast as it is asked for. */
  stdin(): AsyncIterable<Uint8Array>;
  /** The embedded database in a file. Loads the driver; opens nothing. */
  sqlite(file: string): Promise<SqlSource>;
  /**
   * Listens, and answers each request with `fetch`.
   *
   * @throws {RangeError} when the address cannot be had.
   */
  serve(address: Address, fetch: FetchHandler): HttpServer;
}
