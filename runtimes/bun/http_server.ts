/**
 * Serving the HTTP app with Bun.
 *
 * @module
 */
import { isLoopbackHost } from "../../src/http/auth.ts";

/** Where to listen. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** A server that listens. */
export interface HttpServer {
  readonly url: string;
  /** Lets requests in flight finish for up to `waitMs`, then cuts them. */
  stop(waitMs: number): Promise<void>;
}

/** Bun's default; an idle connection is closed after it. */
const IDLE_SECONDS = 10;

/**
 * Reads `PORT`, `HOST:PORT` or `[IPv6]:PORT`; without a host it is 127.0.0.1. Port 0 takes any free one.
 *
 * @throws {RangeError} when it is none of these.
 */
export function parseAddress(text: string): Address {
  const match = /^(?:(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):)?(\d{1,5})$/.exec(text);
  const port = Number(match?.[2]);
  if (match === null || port > 65_535) {
    throw new RangeError(
      "Cannot listen: the address is malformed; write PORT or HOST:PORT, as 127.0.0.1:8787",
    );
  }
  return { host: (match[1] ?? "127.0.0.1").replace(/^\[(.*)\]$/, "$1"), port };
}

/** Whether only programs on this machine can reach the address. */
export function isLoopback(address: Address): boolean {
  return isLoopbackHost(address.host);
}

/**
 * Listens.
 *
 * @throws {RangeError} when the address cannot be had.
 */
export function serveHttp(
  address: Address,
  fetch: (request: Request) => Response | Promise<Response>,
): HttpServer {
  const shown = address.host.includes(":") ? `[${address.host}]` : address.host;
  let server: Bun.Server<undefined>;
  try {
    server = Bun.serve({
      hostname: address.host,
      port: address.port,
      development: false,
      idleTimeout: IDLE_SECONDS,
      fetch(request, listening) {
        // A drain is silent until its report; its budget bounds it, and a caller who hangs up ends it.
        if (new URL(request.url).pathname === "/v1/drain") listening.timeout(request, 0);
        return fetch(request);
      },
    });
  } catch (cause) {
    throw new RangeError(
      `Cannot listen on ${shown}:${address.port}: the address is taken or not allowed; choose another port or host`,
      { cause },
    );
  }
  return {
    url: `http://${shown}:${server.port}`,
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
