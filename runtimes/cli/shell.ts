/**
 * What the commands ask of the runtime they run on, beyond the Platform. Everything else they do with what Bun and Deno have
 * in common: `node:process`, `node:fs`, `node:path` and `node:util`.
 *
 * @module
 */
import type { SqlSource } from "../../adapters/sqlite/mod.ts";
import type { Platform } from "../../src/platform.ts";
import type { Address, FetchHandler, HttpServer } from "./address.ts";

export interface Shell {
  readonly platform: Platform;
  /** What people type before a command's name: `"bun run"`. */
  readonly start: string;
  /** A sentence at the end of the list of commands, about starting them in yet another way. */
  readonly hint?: string;
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
