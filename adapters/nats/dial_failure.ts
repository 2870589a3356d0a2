/**
 * Why no connection came about, in words of our own: what a runtime or the client library says of it may hold what they were given, and each says it in its own way. Does no I/O of its own.
 *
 * @module
 */
import { kindOf } from "../../src/known_fields.ts";

/**
 * - `refused`: nobody listens at the port.
 * - `unknownHost`: there is no address for the host's name.
 * - `notWebSocket`: something listens that speaks another protocol, as the port for plain NATS clients does.
 * - `status`: a web server, or something in between, answered and opened no WebSocket.
 * - `tls`: TLS could not be agreed on, or the certificate is not trusted.
 * - `timeout`: nothing came in time.
 * - `notNats`: a WebSocket was opened, and what speaks over it is no nats-server.
 * - `login`: the server does not let this user in.
 * - `notGiven`: what the option `openWebSocket` answered is no WebSocket.
 * - `unopened`: no WebSocket was opened, and the runtime does not say why.
 * - `lost`: it was closed.
 */
export type ConnectFailure =
  | "refused"
  | "unknownHost"
  | "notWebSocket"
  | "status"
  | "tls"
  | "timeout"
  | "notNats"
  | "login"
  | "notGiven"
  | "unopened"
  | "lost";

/** The `cause` of a `BrokerError` that tells of no connection: says by its `kind` why the last try failed. */
export class NatsConnectError extends Error {
  override name = "NatsConnectError";
  readonly kind: ConnectFailure;
  constructor(kind: ConnectFailure, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** What is known of a try that failed. */
export interface FailedDial {
  /** The library's code, where it has one. */
  readonly code: unknown;
  /** Whether the WebSocket was opened. */
  readonly opened: boolean;
  /** What the runtime said of the socket, in its words; empty where it said nothing. */
  readonly hint: string;
  /** Whether TLS was wanted. */
  readonly secure: boolean;
  readonly timeoutMs: number;
}

const LOGIN = new Set(["AUTHORIZATION_VIOLATION", "BAD_AUTHENTICATION"]);

/** The words of Bun, of Deno's own WebSocket and of ours for Deno. The order matters: Bun's say "Failed to connect" of a name, too. */
const HINTS: readonly (readonly [RegExp, ConnectFailure])[] = [
  [/ENOTFOUND|EAI_AGAIN|dns error|lookup/i, "unknownHost"],
  [/ECONNREFUSED|connection refused|tcp connect error/i, "refused"],
  [/TLS|SSL|EPROTO|corrupt message|certificate|CERT_/i, "tls"],
  [/HPE_|Invalid response|invalid HTTP|nothing that can be read/i, "notWebSocket"],
  [
    /ECONNRESET|reset by peer|Connection ended|closed before|operation was canceled|before it answered/i,
    "lost",
  ],
];

const STATUS = /(?:status code:?|answered) (\d{3})\b/i;

/** Says why a try to connect failed. */
export function whyNoConnection(dial: FailedDial): NatsConnectError {
  const { code, opened, hint, secure, timeoutMs } = dial;
  if (typeof code === "string" && LOGIN.has(code)) {
    return new NatsConnectError("login", "the server refuses the credentials");
  }
  if (opened) {
    if (code === "TIMEOUT") {
      return new NatsConnectError(
        "timeout",
        `a WebSocket was opened there, but no nats-server spoke within ${timeoutMs} ms`,
      );
    }
    if (code === undefined) {
      return new NatsConnectError(
        "notNats",
        "a WebSocket was opened there, but what speaks over it is no nats-server",
      );
    }
    const known = typeof code === "string" && /^[A-Z_]{1,40}$/.test(code) && !code.startsWith("UNKNOWN");
    return new NatsConnectError("lost", `the last try failed${known ? ` (${code})` : ""}`);
  }
  const unopened = (kind: ConnectFailure, why: string) =>
    new NatsConnectError(kind, `no WebSocket was opened there at the last try: ${why}`);
  const status = STATUS.exec(hint)?.[1];
  const mend = `is that the port of nats-server's websocket {} block?${secure ? "" : " One with TLS is reached by wss://."}`;
  if (status !== undefined) return unopened("status", `a web server answered ${status}; ${mend}`);
  switch (HINTS.find(([words]) => words.test(hint))?.[1]) {
    case "unknownHost":
      return unopened("unknownHost", "its host's name is not known (DNS); is it spelled right?");
    case "refused":
      return unopened(
        "refused",
        "nobody listens at that port; is the server up, and does it have a websocket {} block?",
      );
    case "tls":
      return unopened(
        "tls",
        "TLS could not be agreed on; a listener with no_tls is reached by ws://, and a certificate must be one that this runtime trusts",
      );
    case "notWebSocket":
      return unopened(
        "notWebSocket",
        `what listens there is no WebSocket listener (the port for plain NATS clients is none); ${mend}`,
      );
    case "lost":
      return unopened("lost", `the connection was closed without an answer; ${mend}`);
    default:
      return code === "TIMEOUT"
        ? unopened("timeout", `nothing answered within ${timeoutMs} ms`)
        : new NatsConnectError("unopened", "no WebSocket was opened there at the last try");
  }
}

/**
 * What a function opens for an address.
 *
 * @throws {NatsConnectError} when it throws, or answers something else: of what it threw only the class is told.
 */
export function openedBy(openWebSocket: (url: string) => unknown, url: string): WebSocket {
  let given: unknown;
  try {
    given = openWebSocket(url);
  } catch (error) {
    throw new NatsConnectError(
      "unopened",
      `no WebSocket was opened there at the last try: openWebSocket threw ${classOf(error)}`,
    );
  }
  const { send, close, then } = Object(given) as { send?: unknown; close?: unknown; then?: unknown };
  if (typeof send === "function" && typeof close === "function") return given as WebSocket;
  const is = typeof then === "function" ? "a Promise" : kindOf(given);
  throw new NatsConnectError("notGiven", `openWebSocket answered ${is}, which is no WebSocket`);
}

function classOf(error: unknown): string {
  const name = error instanceof Error ? error.name : kindOf(error);
  return /^[\w ]{1,60}$/.test(name) ? name : "an error";
}
