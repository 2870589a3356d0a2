/**
 * Requests to Redis over HTTP: each sent once, each with a deadline, each counted, each failure told without its payload.
 *
 * @module
 */
// The entry for Workers: the main one reads environment variables, for which Deno would need a permission.
import { Redis } from "@upstash/redis/cloudflare";
import type { BrokerError } from "../../src/errors.ts";
import { failure, isNoScript } from "./failure.ts";

export interface ClientOptions {
  readonly url: string;
  readonly token: string;
  readonly timeoutMs: number;
  /** Called for each HTTP request. */
  readonly onRequest: () => void;
}

/** Digests of scripts, made once and for all connections. Not at module scope: some runtimes allow nothing asynchronous there. */
const digests = new Map<string, string>();

export class RedisClient {
  readonly origin: string;
  readonly #redis: Redis;
  readonly #timeoutMs: number;
  readonly #onRequest: () => void;
  /** The signal of the request being made; the library asks for it before it first waits. */
  #signal: AbortSignal = new AbortController().signal;

  constructor(options: ClientOptions) {
    this.origin = new URL(options.url).origin;
    this.#timeoutMs = options.timeoutMs;
    this.#onRequest = options.onRequest;
    this.#redis = new Redis({
      url: options.url,
      token: options.token,
      // The loop retries, with jitter. `false` would still send twice.
      retry: { retries: 0 },
      // Bodies are exact: "123" stays a text.
      automaticDeserialization: false,
      // Records hold text only, so plain JSON is exact, and it is parsed natively; base64 is decoded in a loop.
      responseEncoding: false,
      enableAutoPipelining: false,
      enableTelemetry: false,
      // Scripts run where the writes are.
      readYourWrites: false,
      // A function: on a plain signal's abort the library answers null, as if the queue were empty.
      signal: () => this.#signal,
    });
  }

  /**
   * Runs a script by its digest, and by its text where the server does not know it.
   *
   * @throws {BrokerError}
   */
  async run(verb: string, script: string, keys: string[], args: string[]): Promise<unknown> {
    const digest = digests.get(script) ?? (await digestOf(script));
    try {
      return await this.#send(() => this.#redis.evalsha<string[], unknown>(digest, keys, args));
    } catch (failed) {
      if (!isNoScript((failed as Failed).error)) throw this.#told(verb, failed as Failed);
    }
    try {
      return await this.#send(() => this.#redis.eval<string[], unknown>(script, keys, args));
    } catch (failed) {
      throw this.#told(verb, failed as Failed);
    }
  }

  /**
   * Sends one command.
   *
   * @throws {BrokerError}
   */
  async command(verb: string, command: [string, ...string[]]): Promise<unknown> {
    try {
      return await this.#send(() => this.#redis.exec<unknown>(command));
    } catch (failed) {
      throw this.#told(verb, failed as Failed);
    }
  }

  async #send(start: () => Promise<unknown>): Promise<unknown> {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), this.#timeoutMs);
    this.#signal = controller.signal;
    this.#onRequest();
    try {
      return await start();
    } catch (error) {
      throw new Failed(error, controller.signal.aborted);
    } finally {
      clearTimeout(timer);
    }
  }

  #told(verb: string, failed: Failed): BrokerError {
    const { error, timedOut } = failed;
    return failure(error, { verb, origin: this.origin, timeoutMs: this.#timeoutMs, timedOut });
  }
}

/** What a request ended with, before it is told. Never leaves this module. */
class Failed {
  readonly error: unknown;
  readonly timedOut: boolean;
  constructor(error: unknown, timedOut: boolean) {
    this.error = error;
    this.timedOut = timedOut;
  }
}

async function digestOf(script: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-1", new TextEncoder().encode(script));
  let digest = "";
  for (const byte of new Uint8Array(hash)) digest += byte.toString(16).padStart(2, "0");
  digests.set(script, digest);
  return digest;
}
