/**
 * Where a command serves HTTP. Pure.
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

/** Answers requests. */
export type FetchHandler = (request: Request) => Response | Promise<Response>;

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

/** A host and port as they stand in a URL. */
export function shownAddress(host: string, port: number): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** The error of an address that cannot be had. */
export function cannotListen({ host, port }: Address, cause: unknown): RangeError {
  return new RangeError(
    `Cannot listen on ${shownAddress(host, port)}: the address is taken or not allowed; choose another port or host`,
    { cause },
  );
}
