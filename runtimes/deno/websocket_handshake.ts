/**
 * Opening a WebSocket's connection: TCP without Nagle's algorithm, TLS where asked, and the HTTP request that makes it one.
 *
 * @module
 */

/** What is read from and written to. */
export interface Duplex {
  /** Answers how many bytes came, or `null` at the end. */
  read(into: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
  close(): void;
}

/** The server's answer opens no WebSocket. Its text holds nothing of what was given. */
export class HandshakeError extends Error {
  override name = "HandshakeError";
}

/** The longest answer's head that is taken in, in bytes. */
const MAX_HEAD_BYTES = 16_384;

/** What an answer begins with. */
const ANSWER = "HTTP/1.";

const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/**
 * Connects and shakes hands.
 *
 * @param signal ends it at once.
 * @returns the connection, and what the server sent right behind its answer.
 * @throws {Error} when it cannot be opened, or was ended; no text has the URL's credentials.
 */
export async function handshake(
  url: URL,
  signal: AbortSignal,
): Promise<{ readonly connection: Duplex; readonly rest: Uint8Array<ArrayBuffer> }> {
  const connection = await connect(url, signal);
  let cutOff = false;
  const cut = () => {
    cutOff = true;
    connection.close();
  };
  signal.addEventListener("abort", cut);
  try {
    signal.throwIfAborted();
    const key = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(16))));
    await send(connection, requestHead(url, key));
    const { head, rest } = await readHead(connection);
    checkAnswer(head, await acceptOf(key));
    signal.throwIfAborted();
    return { connection, rest };
  } catch (error) {
    if (!cutOff) connection.close();
    throw error;
  } finally {
    signal.removeEventListener("abort", cut);
  }
}

async function connect(url: URL, signal: AbortSignal): Promise<Duplex> {
  const hostname = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const secure = url.protocol === "wss:";
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
  const tcp = await Deno.connect({ hostname, port, signal });
  tcp.setNoDelay(true);
  return secure ? await Deno.startTls(tcp, { hostname, alpnProtocols: ["http/1.1"] }) : tcp;
}

function requestHead(url: URL, key: string): string {
  const lines = [
    `GET ${url.pathname}${url.search} HTTP/1.1`,
    `Host: ${url.host}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    `Sec-WebSocket-Key: ${key}`,
  ];
  if (url.username !== "") {
    const pair = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    lines.push(`Authorization: Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(pair)))}`);
  }
  return `${lines.join("\r\n")}\r\n\r\n`;
}

async function send(connection: Duplex, text: string): Promise<void> {
  const bytes = new TextEncoder().encode(text);
  for (let sent = 0; sent < bytes.length; ) sent += await connection.write(bytes.subarray(sent));
}

async function readHead(
  connection: Duplex,
): Promise<{ readonly head: string; readonly rest: Uint8Array<ArrayBuffer> }> {
  const buffer = new Uint8Array(MAX_HEAD_BYTES);
  let there = 0;
  while (there < MAX_HEAD_BYTES) {
    const count = await connection.read(buffer.subarray(there));
    if (count === null) throw new HandshakeError("the server closed the connection before it answered");
    // Its end may lie across the old bytes and the new.
    const end = endOfHead(buffer, Math.max(0, there - 3), there + count);
    there += count;
    // Whoever speaks another protocol need not end what it says.
    if (!ANSWER.startsWith(new TextDecoder().decode(buffer.subarray(0, Math.min(there, ANSWER.length))))) {
      throw new HandshakeError("the server answered nothing that can be read");
    }
    if (end !== undefined) {
      return { head: new TextDecoder().decode(buffer.subarray(0, end)), rest: buffer.slice(end, there) };
    }
  }
  throw new HandshakeError("the server's answer is too long");
}

function endOfHead(bytes: Uint8Array, from: number, to: number): number | undefined {
  for (let at = from; at + 4 <= to; at += 1) {
    if (bytes[at] === 13 && bytes[at + 1] === 10 && bytes[at + 2] === 13 && bytes[at + 3] === 10)
      return at + 4;
  }
  return undefined;
}

/** Fails unless the answer agrees to become a WebSocket, and to nothing that was not asked for. */
function checkAnswer(head: string, accept: string): void {
  const [status = "", ...lines] = head.split("\r\n");
  const [, version, code] = /^HTTP\/1\.([01]) (\d{3})/.exec(status) ?? [];
  if (code !== "101" || version !== "1")
    throw new HandshakeError(`the server answered ${code ?? "nothing that can be read"}`);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon < 1) continue;
    headers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
  }
  const connection =
    headers
      .get("connection")
      ?.toLowerCase()
      .split(/\s*,\s*/) ?? [];
  if (headers.get("upgrade")?.toLowerCase() !== "websocket" || !connection.includes("upgrade")) {
    throw new HandshakeError("the server did not agree to a WebSocket");
  }
  if (headers.get("sec-websocket-accept") !== accept)
    throw new HandshakeError("the server's key does not fit");
  if (headers.has("sec-websocket-extensions") || headers.has("sec-websocket-protocol")) {
    throw new HandshakeError("the server agreed to what was not asked for");
  }
}

/** What a server must answer to a key. */
export async function acceptOf(key: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-1", new TextEncoder().encode(key + MAGIC));
  return btoa(String.fromCharCode(...new Uint8Array(digest)));
}
