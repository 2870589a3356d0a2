/**
 * Serving the HTTP app with Deno.
 *
 * @module
 */
import {
  type Address,
  cannotListen,
  type FetchHandler,
  type HttpServer,
  shownAddress,
} from "../cli/address.ts";

/**
 * Listens. Needs `--allow-net` for the address.
 *
 * @throws {RangeError} when the address cannot be had.
 */
export function serveHttp(address: Address, fetch: FetchHandler): HttpServer {
  const cut = new AbortController();
  let server: Deno.HttpServer<Deno.NetAddr>;
  try {
    server = Deno.serve(
      {
        hostname: address.host,
        port: address.port,
        signal: cut.signal,
        // Eddy says itself where it serves.
        onListen: () => {},
        // An error that reaches this point is none of the app's: its text stays in here.
        onError: () => new Response("Internal Server Error", { status: 500 }),
      },
      (request) => fetch(request),
    );
  } catch (cause) {
    throw cannotListen(address, cause);
  }
  return {
    url: `http://${shownAddress(address.host, server.addr.port)}`,
    async stop(waitMs) {
      const late = setTimeout(() => cut.abort(), waitMs);
      await server.shutdown();
      clearTimeout(late);
    },
  };
}
