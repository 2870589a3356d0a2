/**
 * An HTTP proxy on loopback that does what networks and the boxes in them do. What it does to a request is set by the test or drawn by a seed.
 *
 * @module
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { FaultLog } from "./fault_log.ts";

export type HttpFault =
  | { readonly kind: "pass" }
  /** The connection ends before the request goes on: no effect. */
  | { readonly kind: "cut" }
  /** The request is taken, goes nowhere, and is never answered. */
  | { readonly kind: "halfOpen" }
  /** The request takes effect, and is never answered. */
  | { readonly kind: "stall" }
  /** The request takes effect, and the connection ends in place of the answer. */
  | { readonly kind: "loseReply" }
  /** On the way there, and on the way back, in milliseconds. */
  | { readonly kind: "delay"; readonly thereMs: number; readonly backMs: number }
  /** The request goes on twice, one after the other; the second answer counts. */
  | { readonly kind: "repeat" }
  /** An answer of the proxy's own, in HTML: no effect. */
  | { readonly kind: "status"; readonly status: 401 | 429 | 500 | 502 }
  /** The request takes effect; half of the answer's body arrives, then the connection ends. */
  | { readonly kind: "truncate" }
  /** Whatever a test makes up. */
  | { readonly kind: "own"; readonly answer: OwnAnswer };

/** An answer of the test's own. `forward` passes the request on and resolves with what the target answered. */
export type OwnAnswer = (forward: () => Promise<Response>) => Response | Promise<Response>;

/** Decides about the n-th request, counted from 1, by its path too. */
export type FaultScript = (n: number, path: string) => HttpFault;

export const PASS: HttpFault = { kind: "pass" };

export const passing: FaultScript = () => PASS;

/** Every request gets the test's own answer. */
export function answering(answer: OwnAnswer): FaultScript {
  return () => ({ kind: "own", answer });
}

/** Faults drawn by a seed: one request in `oneIn` is hit, on average. The same seed draws the same faults. */
export function seededFaults(seed: number, oneIn: number, kinds: readonly HttpFault[]): FaultScript {
  let state = seed >>> 0;
  const next = () => {
    // A linear congruence is random enough for this; its high bits are taken.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  next();
  return () => {
    const hit = next() * oneIn < 1;
    const which = kinds[Math.floor(next() * kinds.length)];
    return hit && which !== undefined ? which : PASS;
  };
}

export class HttpProxy {
  readonly url: string;
  /** Decides from now on. By default all requests pass. */
  script: FaultScript = passing;
  /** Whether streams of events stay open and bring nothing, as through a box that forgot them. Other answers do not suffer. */
  isDeaf = false;
  requests = 0;
  /** How many parts of streams of events came. */
  streamed = 0;
  /** What it did. What is never answered lasts until the client gives up. */
  readonly log = new FaultLog();
  readonly #server: Server;
  readonly #target: string;

  private constructor(server: Server, target: string) {
    this.#server = server;
    this.#target = target;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** Starts one in front of an origin, as in `http://127.0.0.1:8079`. */
  static async start(target: string): Promise<HttpProxy> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const proxy = new HttpProxy(server, target);
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      // Whatever fails on the way to the target is a cut for the client.
      proxy.#serve(request, response).catch(() => request.socket.destroy());
    });
    return proxy;
  }

  /** Ends all connections, those that wait for an answer too. */
  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests += 1;
    const fault = this.script(this.requests, request.url ?? "/");
    if (fault.kind !== "pass") response.on("close", this.log.begin(nameOf(fault)));
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts);
    const forward = () => this.#forward(request, response, body);
    switch (fault.kind) {
      case "cut":
        request.socket.destroy();
        return;
      case "halfOpen":
        return;
      case "stall":
        await (await forward()).bytes();
        return;
      case "loseReply":
        await (await forward()).bytes();
        request.socket.destroy();
        return;
      case "status":
        response.writeHead(fault.status, { "content-type": "text/html" });
        response.end(`<html><body><h1>${fault.status}</h1></body></html>`);
        return;
      case "truncate": {
        const answer = await forward();
        const bytes = await answer.bytes();
        response.writeHead(answer.status, { ...told(answer), "content-length": String(bytes.length) });
        response.write(bytes.subarray(0, bytes.length >> 1), () => request.socket.destroy());
        return;
      }
      case "repeat":
        await (await forward()).bytes();
        return await this.#pass(await forward(), response);
      case "delay": {
        await Bun.sleep(fault.thereMs);
        const answer = await forward();
        await Bun.sleep(fault.backMs);
        return await this.#pass(answer, response);
      }
      case "own":
        return await this.#pass(await fault.answer(forward), response);
      case "pass":
        return await this.#pass(await forward(), response);
    }
  }

  /** Hands an answer on as it comes, so that a stream of events is one. */
  async #pass(answer: Response, response: ServerResponse): Promise<void> {
    const headers = told(answer);
    const isStream = headers["content-type"]?.startsWith("text/event-stream") === true;
    response.writeHead(answer.status, headers);
    for await (const part of answer.body ?? []) {
      if (isStream) this.streamed += 1;
      if (!(isStream && this.isDeaf)) response.write(part);
    }
    response.end();
  }

  #forward(request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<Response> {
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const headers = new Headers();
    for (const [name, value] of Object.entries(request.headers)) {
      if (typeof value === "string" && !/^(host|connection|content-length|accept-encoding)$/.test(name)) {
        headers.set(name, value);
      }
    }
    const { method = "GET", url = "/" } = request;
    const init: RequestInit = { method, headers, redirect: "manual", signal: gone.signal };
    if (body.length > 0) init.body = new Uint8Array(body);
    return fetch(this.#target + url, init);
  }
}

function nameOf(fault: HttpFault): string {
  if (fault.kind === "status") return `status ${fault.status}`;
  if (fault.kind === "delay") return `delay ${fault.thereMs > fault.backMs ? "there" : "back"}`;
  return fault.kind;
}

function told(answer: Response): Record<string, string> {
  const type = answer.headers.get("content-type");
  return type === null ? {} : { "content-type": type };
}
