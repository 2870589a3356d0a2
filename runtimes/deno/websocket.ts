/**
 * A WebSocket client for Deno over `Deno.connect`.
 *
 * Deno's own leaves Nagle's algorithm on: a second message that is sent before the server has answered the first waits some
 * 40 ms for the first one's acknowledgement, which is most of what a broker's client does. This one turns it off. It needs no
 * permission but `--allow-net`.
 *
 * @module
 */
import { joined } from "../../src/bytes.ts";
import {
  bytesFrame,
  closeFrame,
  FrameError,
  type Incoming,
  MAX_REASON_BYTES,
  MessageReader,
  pongFrame,
  textFrame,
} from "./websocket_frames.ts";
import { type Duplex, HandshakeError, handshake } from "./websocket_handshake.ts";

const CONNECTING = 0;
const OPEN = 1;
const CLOSING = 2;
const CLOSED = 3;

const CLOSE_WAIT_MS = 3_000;

export interface DenoWebSocketOptions {
  /** How long a server may take to answer a close before the connection is cut, in milliseconds. Default 3,000. */
  readonly closeWaitMs?: number;
}

const CHUNK_BYTES = 65_536;

type Listener<E extends Event> = ((event: E) => unknown) | null;

/** As the WebSocket of the standard, without subprotocols and extensions. */
export class DenoWebSocket extends EventTarget {
  static readonly CONNECTING = CONNECTING;
  static readonly OPEN = OPEN;
  static readonly CLOSING = CLOSING;
  static readonly CLOSED = CLOSED;
  readonly CONNECTING = CONNECTING;
  readonly OPEN = OPEN;
  readonly CLOSING = CLOSING;
  readonly CLOSED = CLOSED;
  readonly url: string;
  readonly extensions = "";
  readonly protocol = "";
  binaryType: "blob" | "arraybuffer" = "blob";
  onopen: Listener<Event> = null;
  onmessage: Listener<MessageEvent> = null;
  onerror: Listener<Event> = null;
  onclose: Listener<CloseEvent> = null;
  readonly #closeWaitMs: number;
  #readyState: number = CONNECTING;
  #bufferedAmount = 0;
  /** Ends the opening. */
  readonly #opening = new AbortController();
  #connection: Duplex | undefined;
  #outgoing: { readonly bytes: Uint8Array<ArrayBuffer>; readonly payloadBytes: number }[] = [];
  #writing = false;
  /** What waits for the writing to end. */
  #written: (() => void) | undefined;
  #closeSent = false;
  #ending: { code: number; reason: string; wasClean: boolean } = { code: 1006, reason: "", wasClean: false };
  #failed = false;
  /** Why it was not opened, in words that hold nothing of what it was given. */
  #why = "";
  #late: ReturnType<typeof setTimeout> | undefined;

  /** @throws {DOMException} `SyntaxError` when the URL is no `ws:` or `wss:` URL, or has a fragment. */
  constructor(address: string | URL, options: DenoWebSocketOptions = {}) {
    super();
    this.#closeWaitMs = options.closeWaitMs ?? CLOSE_WAIT_MS;
    let url: URL;
    try {
      url = new URL(address);
    } catch {
      throw new DOMException("Cannot open a WebSocket: its URL is malformed", "SyntaxError");
    }
    if ((url.protocol !== "ws:" && url.protocol !== "wss:") || url.hash !== "") {
      throw new DOMException(
        "Cannot open a WebSocket: its URL is neither ws: nor wss:, or has a fragment",
        "SyntaxError",
      );
    }
    this.url = url.href;
    void this.#run(url);
  }

  get readyState(): number {
    return this.#readyState;
  }

  /** Bytes of messages that did not go out yet. */
  get bufferedAmount(): number {
    return this.#bufferedAmount;
  }

  /**
   * Sends one message. What is sent within one turn of the event loop goes out together.
   *
   * @throws {DOMException} `InvalidStateError` before it is open.
   * @throws {TypeError} for a Blob, which cannot be sent at once.
   */
  send(data: string | ArrayBufferLike | ArrayBufferView): void {
    if (this.#readyState === CONNECTING) {
      throw new DOMException("Cannot send: the WebSocket is not open yet", "InvalidStateError");
    }
    if (typeof data === "object" && data instanceof Blob) {
      throw new TypeError("Cannot send: a Blob is given; send its arrayBuffer()");
    }
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : bytesOf(data);
    this.#bufferedAmount += bytes.length;
    if (this.#readyState !== OPEN) return;
    const framed = typeof data === "string" ? textFrame(data, mask()) : bytesFrame(bytes, mask());
    this.#queue(framed, bytes.length);
  }

  /**
   * Ends it: tells the server, and cuts the connection when that does not answer within `closeWaitMs`.
   *
   * @throws {DOMException} `InvalidAccessError` for a code other than 1000 and 3000 to 4999, `SyntaxError` for a reason of more
   * than 123 bytes.
   */
  close(code?: number, reason = ""): void {
    if (code !== undefined && code !== 1000 && !(code >= 3000 && code <= 4999)) {
      throw new DOMException(
        `Cannot close: the code is ${code}; give 1000, or 3000 to 4999`,
        "InvalidAccessError",
      );
    }
    if (new TextEncoder().encode(reason).length > MAX_REASON_BYTES) {
      throw new DOMException(
        `Cannot close: the reason is longer than ${MAX_REASON_BYTES} bytes`,
        "SyntaxError",
      );
    }
    if (this.#readyState === CLOSING || this.#readyState === CLOSED) return;
    const wasOpen = this.#readyState === OPEN;
    this.#readyState = CLOSING;
    if (wasOpen) this.#sendClose(code ?? (reason === "" ? undefined : 1000), reason);
    else this.#opening.abort();
  }

  async #run(url: URL): Promise<void> {
    try {
      const { connection, rest } = await handshake(url, this.#opening.signal);
      this.#connection = connection;
      this.#readyState = OPEN;
      this.#tell(new Event("open"));
      await this.#read(connection, rest);
    } catch (error) {
      this.#fail(error);
    }
    this.#end();
  }

  /** Reads until the server, or an error, ends it. */
  async #read(connection: Duplex, rest: Uint8Array<ArrayBuffer>): Promise<void> {
    const reader = new MessageReader();
    let chunk: Uint8Array<ArrayBuffer> = rest;
    const buffer = new Uint8Array(CHUNK_BYTES);
    for (;;) {
      for (const incoming of reader.push(chunk)) {
        if (this.#take(incoming)) return;
      }
      const count = await connection.read(buffer);
      if (count === null) return;
      chunk = buffer.slice(0, count);
    }
  }

  /** Answers whether that was the last. */
  #take(incoming: Incoming): boolean {
    switch (incoming.kind) {
      case "text":
        if (this.#readyState === OPEN) this.#tell(new MessageEvent("message", { data: incoming.text }));
        return false;
      case "bytes": {
        if (this.#readyState !== OPEN) return false;
        const { bytes } = incoming;
        const data = this.binaryType === "arraybuffer" ? bytes.buffer : new Blob([bytes]);
        this.#tell(new MessageEvent("message", { data }));
        return false;
      }
      case "ping":
        if (!this.#closeSent) this.#queue(pongFrame(incoming.payload, mask()), 0);
        return false;
      case "pong":
        return false;
      case "close":
        this.#ending = { code: incoming.code, reason: incoming.reason, wasClean: true };
        this.#readyState = CLOSING;
        this.#sendClose(incoming.code === 1005 ? undefined : incoming.code, "");
        return true;
    }
  }

  #sendClose(code: number | undefined, reason: string): void {
    if (this.#closeSent) return;
    this.#queue(closeFrame(code, reason, mask()), 0);
    this.#closeSent = true;
    this.#late = setTimeout(() => this.#cut(), this.#closeWaitMs);
  }

  #queue(bytes: Uint8Array<ArrayBuffer>, payloadBytes: number): void {
    this.#outgoing.push({ bytes, payloadBytes });
    if (this.#writing) return;
    this.#writing = true;
    // What else is said in this turn goes along.
    queueMicrotask(() => void this.#write());
  }

  async #write(): Promise<void> {
    try {
      while (this.#outgoing.length > 0 && this.#connection !== undefined) {
        const batch = this.#outgoing;
        this.#outgoing = [];
        await writeAll(
          this.#connection,
          batch.map(({ bytes }) => bytes),
        );
        for (const { payloadBytes } of batch) this.#bufferedAmount -= payloadBytes;
      }
    } catch {
      // The reader is told as well, and ends it.
      this.#cut();
    } finally {
      this.#writing = false;
      this.#written?.();
    }
  }

  #fail(error: unknown): void {
    if (this.#ending.wasClean) return;
    this.#failed = true;
    if (this.#readyState === CONNECTING) this.#why = whyNotOpened(error);
    if (error instanceof FrameError && this.#readyState === OPEN) this.#sendClose(error.code, "");
  }

  #end(): void {
    const finish = () => {
      clearTimeout(this.#late);
      this.#cut();
      this.#readyState = CLOSED;
      if (this.#failed) this.#tell(new ErrorEvent("error", { message: this.#why }));
      this.#tell(new CloseEvent("close", this.#ending));
    };
    if (!this.#writing) return finish();
    // The last frame, a close, is still to go out, if the server takes it.
    this.#late ??= setTimeout(() => this.#cut(), this.#closeWaitMs);
    this.#written = finish;
  }

  #cut(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    try {
      connection?.close();
    } catch {
      // It was closed already.
    }
  }

  #tell(event: Event): void {
    const handler = this.#handlerOf(event.type);
    this.dispatchEvent(event);
    try {
      handler?.call(this, event);
    } catch (error) {
      // The listener's fault, and none of the connection's.
      reportError(error);
    }
  }

  #handlerOf(type: string): Listener<Event> {
    if (type === "message") return this.onmessage as Listener<Event>;
    if (type === "open") return this.onopen;
    if (type === "error") return this.onerror;
    return this.onclose as Listener<Event>;
  }
}

/** The runtime's own words may hold an address or worse. */
function whyNotOpened(error: unknown): string {
  if (error instanceof HandshakeError) return error.message;
  if (error instanceof Deno.errors.ConnectionRefused) return "connection refused";
  const text = error instanceof Error ? error.message : "";
  if (/lookup address|dns/i.test(text)) return "dns error";
  if (/certificate|tls|corrupt message|handshake/i.test(text)) return "TLS handshake failed";
  if (error instanceof Deno.errors.ConnectionReset || error instanceof Deno.errors.UnexpectedEof) {
    return "the server closed the connection before it answered";
  }
  return "";
}

function bytesOf(data: ArrayBufferLike | ArrayBufferView): Uint8Array {
  return ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
}

/** Random bytes for many frames: to ask for four of them takes as long as for all of these. */
const masks = new Uint8Array(4096);
let masksUsed = masks.length;

/** Four that no frame had before; they are good until the next are asked for. */
function mask(): Uint8Array {
  if (masksUsed === masks.length) {
    crypto.getRandomValues(masks);
    masksUsed = 0;
  }
  masksUsed += 4;
  return masks.subarray(masksUsed - 4, masksUsed);
}

async function writeAll(connection: Duplex, pieces: readonly Uint8Array[]): Promise<void> {
  const whole = joined(
    pieces,
    pieces.reduce((sum, { length }) => sum + length, 0),
  );
  let sent = await connection.write(whole);
  while (sent < whole.length) sent += await connection.write(whole.subarray(sent));
}
