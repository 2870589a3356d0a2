/**
 * A WebSocket between nats.ws and the runtime's, which can be given up at once.
 *
 * nats.ws waits for a socket's bytes to be sent before it lets go of it, which on a dead one is for ever, and leaves a socket alone whose
 * handshake took too long. This one is closed for nats.ws the moment we say so, whatever the real one still does.
 *
 * It also joins what is written in one turn of the event loop into one frame: each write is a system call, and costs more than a job's whole handling.
 *
 * And it reads the messages for our own inboxes itself, past nats.ws, which is given all else.
 *
 * @module
 */
import { joined } from "./bytes.ts";
import { IncomingReader } from "./incoming.ts";

const encoder = new TextEncoder();

interface CloseNotice {
  readonly wasClean: boolean;
  readonly reason: string;
}

/** Calls back when this turn of the event loop is over. */
const afterThisTurn: (fn: () => void) => void =
  typeof setImmediate === "function" ? (fn) => void setImmediate(fn) : (fn) => void setTimeout(fn, 0);

export class SteadySocket {
  readonly #socket: WebSocket;
  #over = false;
  #unsent: (Uint8Array | string)[] = [];
  /** Whether what is unsent will be sent at this turn's end. */
  #planned = false;
  /** How many frames came in. */
  received = 0;
  /** Whether it was opened. */
  opened = false;
  /** What the runtime said of its failure; empty where it said nothing. Not to be shown. */
  hint = "";
  /** Called at the end of a turn, before what was written in it is sent; may write more. */
  beforeSending: () => void = () => {};
  /** Reads what comes in; inboxes are opened there. */
  readonly incoming = new IncomingReader((data) => this.onmessage?.({ data }));
  /** Set by nats.ws after the first frame could have come; ours is set before. */
  binaryType = "arraybuffer";
  onopen: (() => void) | null = null;
  onmessage: ((event: { readonly data: unknown }) => void) | null = null;
  onclose: ((event: CloseNotice) => void) | null = null;
  onerror: ((event: { readonly message: string; readonly error: unknown }) => void) | null = null;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.opened = true;
      if (!this.#over) this.onopen?.();
    };
    socket.onmessage = (event) => {
      this.received += 1;
      if (this.#over) return;
      if (event.data instanceof ArrayBuffer) this.incoming.read(new Uint8Array(event.data));
      else this.onmessage?.(event);
    };
    socket.onclose = () => this.#end("the connection was closed");
    // What the runtime says of it may hold the address; whoever asks is told that it failed.
    socket.onerror = (event) => {
      this.hint = hintOf(event);
      if (!this.#over) this.onerror?.({ message: "the WebSocket failed", error: undefined });
      this.#end("the WebSocket failed");
    };
  }

  get bufferedAmount(): number {
    return this.#over ? 0 : this.#socket.bufferedAmount;
  }

  /** Sends whole protocol lines, with what else is written in this turn. */
  send(lines: ArrayBuffer | Uint8Array | string): void {
    this.#unsent.push(lines instanceof ArrayBuffer ? new Uint8Array(lines) : lines);
    if (this.#planned) return;
    this.#planned = true;
    // Mostly a pull follows at once and takes it along: then there is no need of a turn's end.
    queueMicrotask(this.#plan);
  }

  /** Sends what was written in this turn without waiting for its end: somebody can work on it meanwhile. */
  sendNow(lines: Uint8Array): void {
    this.#unsent.push(lines);
    this.#flush();
  }

  readonly #plan = (): void => {
    if (this.#unsent.length > 0) afterThisTurn(this.#turnEnds);
    else this.#planned = false;
  };

  readonly #turnEnds = (): void => {
    this.#planned = false;
    this.#flush();
  };

  #flush(): void {
    // It may have left already.
    if (this.#unsent.length === 0) return;
    this.beforeSending();
    const unsent = this.#unsent;
    this.#unsent = [];
    if (this.#over) return;
    try {
      this.#socket.send(encodedAll(unsent) as Uint8Array<ArrayBuffer>);
    } catch {
      this.#end("the WebSocket failed");
    }
  }

  /** Closes it, and tells nats.ws so at once. May be called twice. */
  close(): void {
    this.#end("the connection was given up");
    try {
      this.#socket.close();
    } catch {
      // It was closed by itself.
    }
  }

  #end(reason: string): void {
    if (this.#over) return;
    this.#over = true;
    this.onclose?.({ wasClean: false, reason });
  }
}

/** All that runtimes say of a socket that failed: some in a message, some in an error's code. */
function hintOf(event: Event): string {
  const { message, error } = event as Partial<ErrorEvent>;
  const { code, message: more } = (error ?? {}) as { code?: unknown; message?: unknown };
  const said = [message, code, more].filter((one) => typeof one === "string").join(" ");
  // The address says nothing of why.
  return said.replace(/\bwss?:\/\/[^\s'"]*/g, "");
}

/** All in one piece. Mostly it is ASCII and short, and an encoder of the runtime's takes longer to be called than to work. */
function encodedAll(parts: readonly (Uint8Array | string)[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    if (typeof part !== "string") bytes.set(part, at);
    else if (!writeShortAscii(part, bytes, at)) return encodedOneByOne(parts);
    at += part.length;
  }
  return bytes;
}

/** The longest text that is encoded here, in characters. */
const SHORT = 512;

/** Answers whether it was one. */
function writeShortAscii(text: string, bytes: Uint8Array, from: number): boolean {
  const { length } = text;
  if (length > SHORT) return false;
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at);
    if (code > 127) return false;
    bytes[from + at] = code;
  }
  return true;
}

function encodedOneByOne(parts: readonly (Uint8Array | string)[]): Uint8Array {
  const pieces = parts.map((part) => (typeof part === "string" ? encoder.encode(part) : part));
  return joined(
    pieces,
    pieces.reduce((sum, { length }) => sum + length, 0),
  );
}
