/**
 * A TCP proxy in front of a WebSocket listener that can do what networks do: cut connections, hold all bytes back without closing anything, and delay them.
 *
 * @module
 */
import { createServer, type Server, Socket } from "node:net";
import { freePort } from "./redis_server.ts";

/** One client's connection and the one to the server that goes with it. */
class Pair {
  readonly client: Socket;
  readonly server: Socket;
  readonly #proxy: WebSocketProxy;
  readonly #held: [to: Socket, bytes: Uint8Array][] = [];

  constructor(proxy: WebSocketProxy, client: Socket, port: number) {
    this.#proxy = proxy;
    this.client = client;
    this.server = new Socket();
    this.server.connect(port, "127.0.0.1");
    for (const [from, to] of [
      [client, this.server],
      [this.server, client],
    ] as const) {
      from.setNoDelay(true);
      from.on("data", (bytes: Buffer) => this.#pass(to, bytes));
      // Either end's going takes the other with it, unless nothing at all gets through.
      from.on("close", () => {
        if (!proxy.isFrozen) to.destroy();
      });
      from.on("error", () => {});
    }
  }

  #pass(to: Socket, bytes: Uint8Array): void {
    if (this.#proxy.isFrozen || this.#held.length > 0) {
      this.#held.push([to, bytes]);
      return;
    }
    const { delayMs } = this.#proxy;
    if (delayMs === 0) to.write(bytes);
    else setTimeout(() => to.write(bytes), delayMs);
  }

  thaw(): void {
    for (const [to, bytes] of this.#held.splice(0)) to.write(bytes);
    if (this.client.closed) this.server.destroy();
    if (this.server.closed) this.client.destroy();
  }

  cut(): void {
    this.client.destroy();
    this.server.destroy();
  }
}

export class WebSocketProxy {
  readonly url: string;
  /** How long each piece takes, in milliseconds. */
  delayMs = 0;
  /** How many connections were made through it. */
  connections = 0;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #isFrozen = false;

  private constructor(port: number, target: number) {
    this.url = `ws://127.0.0.1:${port}`;
    this.#server = createServer((client) => {
      this.connections += 1;
      const pair = new Pair(this, client, target);
      this.#pairs.add(pair);
      client.on("close", () => {
        if (!this.#isFrozen) this.#pairs.delete(pair);
      });
    });
  }

  /** Starts one in front of a port on this machine. */
  static async start(target: number): Promise<WebSocketProxy> {
    const port = await freePort();
    const proxy = new WebSocketProxy(port, target);
    await new Promise<void>((resolve) => proxy.#server.listen(port, "127.0.0.1", resolve));
    return proxy;
  }

  get isFrozen(): boolean {
    return this.#isFrozen;
  }

  /** Ends all connections at once, without a WebSocket's close frame. */
  cut(): void {
    for (const pair of this.#pairs) pair.cut();
    this.#pairs.clear();
  }

  /** From now on nothing gets through, and nobody is told: connections stay, and new ones are accepted. */
  freeze(): void {
    this.#isFrozen = true;
  }

  /** What was held back goes on. */
  thaw(): void {
    this.#isFrozen = false;
    for (const pair of this.#pairs) pair.thaw();
  }

  async stop(): Promise<void> {
    this.thaw();
    this.cut();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
