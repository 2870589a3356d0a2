/**
 * Serving the HTTP app with Bun.
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

/** How long a connection may be silent, in seconds: longer than any request waits for the broker. */
const IDLE_SECONDS = 60;

const HEALTH = "/health";

/** Whether the app takes this path for that of a drain: it undoes escapes, and passes over a slash at the end. */
function isDrain(pathname: string): boolean {
  try {
    return /^\/v1\/drain\/?$/.test(decodeURI(pathname));
  } catch {
    return false;
  }
}

/** The answer to a request whose URL cannot be told, in the shape of the app's refusals. */
const NO_URL = {
  error: "Cannot read the request: its Host header is missing or malformed",
  code: "invalid-host",
};

/**
 * Listens.
 *
 * @param idleSeconds how long a connection may be silent, in whole seconds; 60 by default.
 * @throws {RangeError} when the address cannot be had.
 */
export function serveHttp(address: Address, fetch: FetchHandler, idleSeconds = IDLE_SECONDS): HttpServer {
  let server: Bun.Server<undefined>;
  try {
    server = Bun.serve({
      hostname: address.host,
      port: address.port,
      development: false,
      // Told that it is not in development, Bun shares the port with whoever else does, and requests would go to either.
      reusePort: false,
      idleTimeout: idleSeconds,
      async fetch(request, listening) {
        // Without a Host header that can be read the request has no URL, and nobody further on could route it. A load balancer's look may be
        // HTTP/1.0, which knows no such header.
        if (request.url === HEALTH) return await fetch(new Request(`http://localhost${HEALTH}`, request));
        if (!URL.canParse(request.url)) return Response.json(NO_URL, { status: 400 });
        // A drain is silent until its report; its budget bounds it, and a caller who hangs up ends it.
        if (!isDrain(new URL(request.url).pathname)) return await fetch(request);
        listening.timeout(request, 0);
        try {
          return await fetch(request);
        } finally {
          // Else the connection could be held for ever afterwards, by anybody: whoever is refused comes to this point too.
          listening.timeout(request, idleSeconds);
        }
      },
    });
  } catch (cause) {
    throw cannotListen(address, cause);
  }
  return {
    url: `http://${shownAddress(address.host, server.port ?? address.port)}`,
    async stop(waitMs) {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, waitMs);
      });
      await Promise.race([server.stop(false), late]);
      clearTimeout(timer);
      await server.stop(true);
    },
  };
}
