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
import { IncomingReader } from "./incoming.ts";
import { OutgoingLines } from "./outgoing.ts";

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
  /** What was written in this turn. Whoever writes there says so by {@linkcode SteadySocket.wrote}. */
  readonly unsent = new OutgoingLines();
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
  send(lines: ArrayBuffer | Uint8Array): void {
    this.unsent.add(lines instanceof ArrayBuffer ? new Uint8Array(lines) : lines);
    this.wrote();
  }

  /** What was written is sent when this turn ends. */
  wrote(): void {
    if (this.#planned) return;
    this.#planned = true;
    // Mostly a pull follows at once and takes it along: then there is no need of a turn's end.
    queueMicrotask(this.#plan);
  }

  /** Sends what was written in this turn without waiting for its end: somebody can work on it meanwhile. */
  sendNow(lines: Uint8Array): void {
    this.unsent.add(lines);
    this.#flush();
  }

  readonly #plan = (): void => {
    if (!this.unsent.isEmpty) afterThisTurn(this.#turnEnds);
    else this.#planned = false;
  };

  readonly #turnEnds = (): void => {
    this.#planned = false;
    this.#flush();
  };

  #flush(): void {
    // It may have left already.
    if (this.unsent.isEmpty) return;
    this.beforeSending();
    const lines = this.unsent.take();
    if (this.#over) return;
    try {
      this.#socket.send(lines as Uint8Array<ArrayBuffer>);
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
