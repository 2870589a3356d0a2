/**
 * Requests to Redis over HTTP: each sent once, each with a deadline, each counted, each failure told without its payload.
 *
 * Of Upstash's protocol one form is needed: a POST with a command as a JSON list, answered with `{ "result": … }` or `{ "error": TEXT }`. Upstash's own
 * client is not used for it: its one class refers to every command of Redis, so it would be a quarter of a Worker's bundle, with its retries, its
 * pipelining and its reading of values to be switched off one by one; and it follows redirects.
 *
 * @module
 */
import { answeredError, failure, isRedirect, notJson, redirected, refusedToken } from "./failure.ts";

export interface ClientOptions {
  readonly url: string;
  readonly token: string;
  readonly timeoutMs: number;
  /** Called for each HTTP request. */
  readonly onRequest: () => void;
}

/** What a command was answered with. Without an error the result is there, or the answer is none of the protocol. */
interface Answer {
  readonly result?: unknown;
  readonly error?: string | undefined;
}

/** Digests of scripts, made once and for all connections. Not at module scope: some runtimes allow nothing asynchronous there. */
const digests = new Map<string, string>();

export class RedisClient {
  readonly origin: string;
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #timeoutMs: number;
  readonly #onRequest: () => void;

  constructor(options: ClientOptions) {
    this.origin = new URL(options.url).origin;
    this.#url = options.url;
    this.#headers = { authorization: `Bearer ${options.token}`, "content-type": "application/json" };
    this.#timeoutMs = options.timeoutMs;
    this.#onRequest = options.onRequest;
  }

  /**
   * Runs a script by its digest, and by its text where the server does not know it.
   *
   * @throws {BrokerError}
   */
  async run(
    verb: string,
    script: string,
    keys: readonly string[],
    args: readonly string[],
  ): Promise<unknown> {
    const digest = digests.get(script) ?? (await digestOf(script));
    const operands = [String(keys.length), ...keys, ...args];
    let answer = await this.#send(verb, ["EVALSHA", digest, ...operands]);
    if (answer.error?.startsWith("NOSCRIPT") === true) {
      answer = await this.#send(verb, ["EVAL", script, ...operands]);
    }
    return this.#resultOf(verb, answer);
  }

  /**
   * Sends one command.
   *
   * @throws {BrokerError}
   */
  async command(verb: string, command: readonly string[]): Promise<unknown> {
    return this.#resultOf(verb, await this.#send(verb, command));
  }

  #resultOf(verb: string, answer: Answer): unknown {
    if (answer.error === undefined) return answer.result;
    throw answeredError(verb, this.origin, answer.error);
  }

  /** Sends a command once: whether to send it again is the loop's to say, with jitter. */
  async #send(verb: string, command: readonly string[]): Promise<Answer> {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), this.#timeoutMs);
    this.#onRequest();
    try {
      return await this.#post(verb, command, controller.signal);
    } catch (error) {
      const { origin } = this;
      throw failure(error, { verb, origin, timeoutMs: this.#timeoutMs, timedOut: controller.signal.aborted });
    } finally {
      clearTimeout(timer);
    }
  }

  async #post(verb: string, command: readonly string[], signal: AbortSignal): Promise<Answer> {
    const response = await fetch(this.#url, {
      method: "POST",
      redirect: "manual",
      headers: this.#headers,
      body: JSON.stringify(command),
      signal,
    });
    if (isRedirect(response)) {
      await response.body?.cancel();
      throw redirected(verb, this.origin);
    }
    const text = await response.text();
    if (response.status === 401) throw refusedToken(verb, this.origin);
    let answer: { result?: unknown; error?: unknown };
    try {
      // Records hold text only, so plain JSON is exact: the answers need no base64. An answer may be any value, null too.
      answer = Object(JSON.parse(text));
    } catch {
      throw notJson(verb, this.origin, response.status);
    }
    const { result, error } = answer;
    if (typeof error === "string") return { error };
    return response.ok ? { result } : { error: `HTTP ${response.status}` };
  }
}

async function digestOf(script: string): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-1", new TextEncoder().encode(script));
  let digest = "";
  for (const byte of new Uint8Array(hash)) digest += byte.toString(16).padStart(2, "0");
  digests.set(script, digest);
  return digest;
}
