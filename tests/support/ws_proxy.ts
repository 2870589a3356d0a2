/**
 * A proxy in front of a WebSocket listener that can do what networks do: cut connections, hold bytes back without closing anything, delay them, swallow those of
 * one direction, lose an answer after its request took effect, bring a message twice, break off in a frame, and answer the upgrade by itself.
 *
 * @module
 */
import { createServer, type Server, Socket } from "node:net";
import { FaultLog } from "./fault_log.ts";
import { freePort } from "./kept_server.ts";
import { type Piece, PieceReader } from "./ws_frames.ts";

/** To the server, or back from it. */
export type Way = "there" | "back";
export type RefusedStatus = 401 | 429 | 500 | 502;

/** Waits for a piece, and does something to it and its connection in place of passing it on. */
interface Trap {
  readonly way: Way;
  readonly matches: (piece: Piece) => boolean;
  readonly spring: (pair: Pair, piece: Piece) => void;
}

/** One client's connection and the one to the server that goes with it. */
class Pair {
  readonly client: Socket;
  readonly server = new Socket();
  /** Bytes of it were swallowed: nobody can use it any more. */
  hasHole = false;
  /** It is about to end: nothing more gets through. */
  isEnding = false;
  readonly #proxy: WebSocketProxy;
  readonly #held: [way: Way, piece: Piece][] = [];

  constructor(proxy: WebSocketProxy, client: Socket, port: number) {
    this.#proxy = proxy;
    this.client = client;
    this.server.connect(port, "127.0.0.1");
    for (const [way, from, to] of [
      ["there", client, this.server],
      ["back", this.server, client],
    ] as const) {
      const reader = new PieceReader();
      from.setNoDelay(true);
      from.on("data", (bytes: Buffer) => {
        for (const piece of reader.read(bytes)) this.#arrived(way, piece);
      });
      // Either end's going takes the other with it, unless nothing gets through to tell it.
      from.on("close", () => {
        if (!proxy.isFrozen && !proxy.isDead(way)) to.destroy();
      });
      from.on("error", () => {});
    }
  }

  #arrived(way: Way, piece: Piece): void {
    if (this.isEnding) return;
    if (this.#proxy.isDead(way)) this.hasHole = true;
    else if (this.#proxy.isFrozen || this.#held.length > 0) this.#held.push([way, piece]);
    else if (!this.#proxy.isTrapped(way, piece, this)) this.pass(way, piece.bytes);
  }

  /** Hands bytes on. */
  pass(way: Way, bytes: Uint8Array): void {
    const to = way === "there" ? this.server : this.client;
    const delayMs = this.#proxy.delayMs(way);
    if (delayMs === 0) to.write(bytes);
    else setTimeout(() => to.write(bytes), delayMs);
  }

  thaw(): void {
    for (const [way, { bytes }] of this.#held.splice(0)) this.pass(way, bytes);
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
  /** How many connections were made through it. */
  connections = 0;
  /** What it did. */
  readonly log = new FaultLog();
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #delays: Readonly<Record<Way, number>> = { there: 0, back: 0 };
  readonly #dead = new Map<Way, () => void>();
  readonly #traps = new Set<Trap>();
  #thawed: (() => void) | undefined;
  #hurried: (() => void) | undefined;
  #refused: { readonly status: RefusedStatus; readonly ended: () => void } | undefined;

  private constructor(port: number, target: number) {
    this.url = `ws://127.0.0.1:${port}`;
    this.#server = createServer((client) => {
      this.connections += 1;
      if (this.#refused !== undefined) return answerInHtml(client, this.#refused.status);
      const pair = new Pair(this, client, target);
      this.#pairs.add(pair);
      client.on("close", () => {
        if (!this.isFrozen && this.#dead.size === 0) this.#pairs.delete(pair);
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
    return this.#thawed !== undefined;
  }

  delayMs(way: Way): number {
    return this.#delays[way];
  }

  isDead(way: Way): boolean {
    return this.#dead.has(way);
  }

  /** Whether a trap took a piece. */
  isTrapped(way: Way, piece: Piece, pair: Pair): boolean {
    for (const trap of this.#traps) {
      if (trap.way !== way || !trap.matches(piece)) continue;
      this.#traps.delete(trap);
      trap.spring(pair, piece);
      return true;
    }
    return false;
  }

  /** Ends all connections at once, without a WebSocket's close frame. */
  cut(): void {
    this.log.add("cut");
    this.#cutAll();
  }

  /** How long each piece takes from now on, there and back, in milliseconds. */
  delay(thereMs: number, backMs: number): void {
    this.#delays = { there: thereMs, back: backMs };
    this.#hurried?.();
    this.#hurried = thereMs + backMs > 0 ? this.log.begin("delay") : undefined;
  }

  /** A stall: from now on nothing gets through, and nobody is told: connections stay, and new ones are accepted. */
  freeze(): void {
    this.#thawed ??= this.log.begin("stall");
  }

  /** What was held back goes on. */
  thaw(): void {
    this.#thawed?.();
    this.#thawed = undefined;
    for (const pair of this.#pairs) pair.thaw();
  }

  /** Half-open: from now on what goes one way is swallowed, and nobody is told, not of an end either. */
  deaden(way: Way): void {
    if (!this.isDead(way)) this.#dead.set(way, this.log.begin(`half-open ${way}`));
  }

  /** Both directions live again; connections of which something was swallowed end. */
  revive(): void {
    for (const ended of this.#dead.values()) ended();
    this.#dead.clear();
    for (const pair of this.#pairs) {
      if (pair.hasHole) pair.cut();
      else pair.thaw();
    }
  }

  /**
   * The next request that holds a text reaches the server; what comes back on its connection is swallowed up to the first piece that holds the answer's text, and then the
   * connection ends. Resolves when it has.
   */
  loseReply(request: string, answer = ""): Promise<void> {
    return this.#trapped("there", request, (pair, piece, done) => {
      pair.pass("there", piece.bytes);
      const swallow: Trap = {
        way: "back",
        matches: () => true,
        spring: (one, reply) => {
          if (one !== pair) one.pass("back", reply.bytes);
          else if (reply.text().includes(answer)) {
            this.log.add("reply lost");
            pair.cut();
            return done();
          }
          if (!pair.client.closed) this.#traps.add(swallow);
          else done();
        },
      };
      this.#traps.add(swallow);
    });
  }

  /** The next frame of whole messages that holds a text comes twice. Resolves when it has. */
  repeat(message: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#traps.add({
      way: "back",
      matches: (piece) => piece.text().includes(message) && isWholeMessages(piece.text()),
      spring: (pair, { bytes }) => {
        this.log.add("repeat");
        pair.pass("back", bytes);
        pair.pass("back", bytes);
        resolve();
      },
    });
    return promise;
  }

  /** Of the next piece that goes one way and holds a text, the head included, half goes on, and the connection ends. Resolves when it has. */
  truncate(way: Way, text: string): Promise<void> {
    return this.#trapped(way, text, (pair, { bytes }, done) => {
      this.log.add("truncate");
      const to = way === "there" ? pair.server : pair.client;
      pair.isEnding = true;
      to.write(bytes.subarray(0, bytes.length >> 1), () => {
        pair.cut();
        done();
      });
    });
  }

  /** Ends all connections, and answers each new one in HTML, until `admit`. */
  refuse(status: RefusedStatus): void {
    this.admit();
    this.#refused = { status, ended: this.log.begin(`status ${status}`) };
    this.#cutAll();
  }

  admit(): void {
    this.#refused?.ended();
    this.#refused = undefined;
  }

  /** Ends whatever lasts, and waits for nothing more. */
  calm(): void {
    this.#traps.clear();
    this.delay(0, 0);
    this.admit();
    this.revive();
    this.thaw();
  }

  async stop(): Promise<void> {
    this.calm();
    this.#cutAll();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #cutAll(): void {
    for (const pair of this.#pairs) pair.cut();
    this.#pairs.clear();
  }

  #trapped(way: Way, text: string, act: (pair: Pair, piece: Piece, done: () => void) => void): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#traps.add({
      way,
      matches: (piece) => piece.text().includes(text),
      spring: (pair, piece) => act(pair, piece, resolve),
    });
    return promise;
  }
}

function answerInHtml(client: Socket, status: RefusedStatus): void {
  const body = `<html><body><h1>${status}</h1></body></html>`;
  client.on("error", () => {});
  client.once("data", () => {
    client.end(
      `HTTP/1.1 ${status} No\r\ncontent-type: text/html\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
    );
  });
}

/** Whether a frame holds NATS messages from the first byte to the last, so that it can come again and be understood. */
function isWholeMessages(text: string): boolean {
  let at = 0;
  while (at < text.length) {
    const end = text.indexOf("\r\n", at);
    const line = text.slice(at, end);
    const [, length] = /^H?MSG .* (\d+)$/.exec(line) ?? [];
    if (end < 0 || length === undefined) return false;
    at = end + 2 + Number(length) + 2;
  }
  return at === text.length && at > 0;
}
