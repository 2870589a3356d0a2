/**
 * A WebSocket between nats.ws and the runtime's, which can be given up at once.
 *
 * nats.ws waits for a socket's bytes to be sent before it lets go of it, which on a dead one is for ever, and leaves a socket alone whose
 * handshake took too long. This one is closed for nats.ws the moment we say so, whatever the real one still does.
 *
 * @module
 */

interface CloseNotice {
  readonly wasClean: boolean;
  readonly reason: string;
}

export class SteadySocket {
  readonly #socket: WebSocket;
  #over = false;
  /** How many frames came in. */
  received = 0;
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
      if (!this.#over) this.onopen?.();
    };
    socket.onmessage = (event) => {
      this.received += 1;
      if (!this.#over) this.onmessage?.(event);
    };
    socket.onclose = () => this.#end("the connection was closed");
    // What the runtime says of it may hold the address; whoever asks is told that it failed.
    socket.onerror = () => {
      if (!this.#over) this.onerror?.({ message: "the WebSocket failed", error: undefined });
      this.#end("the WebSocket failed");
    };
  }

  get bufferedAmount(): number {
    return this.#over ? 0 : this.#socket.bufferedAmount;
  }

  send(frame: ArrayBuffer | Uint8Array<ArrayBuffer>): void {
    if (!this.#over) this.#socket.send(frame);
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
