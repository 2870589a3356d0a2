/**
 * The development gateway: Upstash's REST protocol in front of any Redis.
 *
 * For people with a Redis of their own, and for the tests. What it serves: one command (`POST /` with a JSON list, or a path
 * such as `/set/key/value`), `POST /pipeline`, `POST /multi-exec`, `POST /subscribe/CHANNEL` and `POST /psubscribe/PATTERN` as
 * server-sent events, Bearer tokens, and answers in base64 when asked (`Upstash-Encoding: base64`).
 *
 * @module
 */
import type { Server } from "bun";
import { checkOptions, checkText, checkTimerMs, checkWhole } from "../../../adapters/checks.ts";
import { isToken } from "../../../src/http/auth.ts";
import { assertKnownFields } from "../../../src/known_fields.ts";
import { shownAddress } from "../../cli/address.ts";
import { answerError, answerMany, answerOne } from "./answers.ts";
import { tokenCheck } from "./auth.ts";
import { BadCommandError, decodePart, readCommand, readCommands, readPath, refusal } from "./commands.ts";
import { RedisConnection, RedisLostError } from "./connection.ts";
import { parseRedisUrl, type RedisAddress } from "./redis_url.ts";
import { type Argument, type Reply, ReplyError, type ReplyForm } from "./resp.ts";
import { openSubscription, type Subscription } from "./subscribe.ts";

export interface GatewayOptions {
  /** Where Redis is: `redis://user:password@host:6379/0`, `rediss://` for TLS. Default `redis://127.0.0.1:6379`. */
  readonly redis?: string;
  /** What a request must bring as `Authorization: Bearer …`. */
  readonly token: string;
  /** Port to listen on; 0, the default, for a free one. */
  readonly port?: number;
  /** Address to listen on; an IPv6 one with brackets or without. Default `127.0.0.1`. */
  readonly hostname?: string;
  /** The largest request body in bytes. Default 10 MiB, as on Upstash. */
  readonly maxBodyBytes?: number;
  /** How long Redis may take to connect or to answer, in milliseconds. Default 10,000. */
  readonly redisTimeoutMs?: number;
  /** How often a subscription is sent a comment line, in milliseconds. Default 2,000: by its absence a worker knows that it would not be woken. */
  readonly pingMs?: number;
}

const GATEWAY_FIELDS: ReadonlySet<string> = new Set<keyof GatewayOptions>([
  "redis",
  "token",
  "port",
  "hostname",
  "maxBodyBytes",
  "redisTimeoutMs",
  "pingMs",
]);

/** What went through a gateway so far. */
export interface GatewayCounts {
  /** HTTP requests, refused ones too. */
  requests: number;
  /** Redis commands sent on their behalf. */
  commands: number;
  /** Subscriptions opened. */
  subscriptions: number;
}

/** A body above the limit that did not say so. */
class TooLargeError extends Error {
  override name = "TooLargeError";
}

const FORM_TEXT: ReplyForm = { base64: false, okDepth: 0 };
const FORM_BASE64: ReplyForm = { base64: true, okDepth: 0 };
const FORM_BASE64_EXEC: ReplyForm = { base64: true, okDepth: 1 };
const METHODS = new Set(["GET", "HEAD", "POST", "PUT"]);

/** A running gateway. Make one with {@linkcode startGateway}. */
export class Gateway {
  /** Counted since the start or the last {@linkcode Gateway.resetCounts}. */
  readonly counts: GatewayCounts = { requests: 0, commands: 0, subscriptions: 0 };
  readonly url: string;
  readonly port: number;
  readonly token: string;
  readonly #server: Server<undefined>;
  readonly #address: RedisAddress;
  readonly #redis: RedisConnection;
  readonly #allowed: (request: Request) => boolean;
  readonly #maxBodyBytes: number;
  readonly #redisTimeoutMs: number;
  readonly #pingMs: number;
  readonly #subscriptions = new Set<Subscription>();

  constructor(options: GatewayOptions) {
    checkGateway(options);
    if (options.token === "") throw new TypeError("Cannot start the gateway: token is empty; give one");
    if (!isToken(options.token)) {
      throw new TypeError(
        "Cannot start the gateway: token has a space or a character outside ASCII, so no header can carry it; give printable ASCII without space",
      );
    }
    this.token = options.token;
    this.#allowed = tokenCheck(options.token);
    this.#address = parseRedisUrl(options.redis ?? "redis://127.0.0.1:6379");
    this.#maxBodyBytes = options.maxBodyBytes ?? 10 * 1024 * 1024;
    this.#redisTimeoutMs = options.redisTimeoutMs ?? 10_000;
    this.#pingMs = options.pingMs ?? 2_000;
    this.#redis = new RedisConnection(this.#address, this.#redisTimeoutMs);
    const hostname = (options.hostname ?? "127.0.0.1").replace(/^\[(.*)\]$/, "$1");
    this.#server = Bun.serve({
      hostname,
      port: options.port ?? 0,
      // Twice what is allowed, so that this gateway answers first and in its own form; Bun's answer has no body. What comes
      // without a length is still bounded.
      maxRequestBodySize: this.#maxBodyBytes * 2,
      idleTimeout: 255,
      fetch: (request) => this.#answer(request),
      error: () => answerError(500, "ERR internal error of the gateway"),
    });
    this.port = this.#server.port as number;
    this.url = `http://${shownAddress(hostname, this.port)}`;
  }

  resetCounts(): void {
    this.counts.requests = 0;
    this.counts.commands = 0;
    this.counts.subscriptions = 0;
  }

  /** Stops listening, breaks open connections off, and leaves Redis. May be called twice. */
  async stop(): Promise<void> {
    for (const subscription of [...this.#subscriptions]) subscription.close();
    await this.#server.stop(true);
    this.#redis.close();
  }

  async #answer(request: Request): Promise<Response> {
    this.counts.requests += 1;
    // Of a Host header that is missing or none, no URL can be made, and nobody further on could read it.
    if (!URL.canParse(request.url)) return answerError(400, "ERR the Host header is missing or malformed");
    if (!METHODS.has(request.method)) return answerError(405, "ERR method not allowed");
    if (!this.#allowed(request)) return answerError(401, "WRONGPASS invalid or missing auth token");
    const size = Number(request.headers.get("content-length") ?? 0);
    if (size > this.#maxBodyBytes) return this.#tooLarge();
    try {
      return await this.#serve(request);
    } catch (error) {
      if (error instanceof TooLargeError) return this.#tooLarge();
      if (error instanceof BadCommandError) return answerError(400, error.message);
      if (error instanceof RedisLostError) return answerError(503, `ERR ${error.message}`);
      throw error;
    }
  }

  #tooLarge(): Response {
    return answerError(413, `ERR max request size exceeded. Limit: ${this.#maxBodyBytes} bytes`);
  }

  /** @throws {TooLargeError} when a body that came without a length is above the limit. */
  async #text(request: Request): Promise<string> {
    if (request.headers.has("content-length")) return await request.text();
    return new TextDecoder().decode(await this.#bytes(request));
  }

  /** @throws {TooLargeError} when it is above the limit. */
  async #bytes(request: Request): Promise<Uint8Array> {
    const bytes = await request.bytes();
    if (bytes.length > this.#maxBodyBytes) throw new TooLargeError();
    return bytes;
  }

  #serve(request: Request): Promise<Response> | Response {
    const base64 = request.headers.get("upstash-encoding") === "base64";
    if (request.headers.get("upstash-response-format") === "resp2") {
      return answerError(400, "ERR this gateway answers in JSON only");
    }
    const path = pathOf(request.url);
    switch (path) {
      case "/":
        return this.#one(request, base64);
      case "/pipeline":
        return this.#pipeline(request, base64);
      case "/multi-exec":
        return this.#transaction(request, base64);
    }
    const [, verb, channel] = path.split("/");
    if (verb === "subscribe" || verb === "psubscribe")
      return this.#subscribe(request, verb, decodePart(channel ?? ""));
    return this.#path(request, base64);
  }

  async #one(request: Request, base64: boolean): Promise<Response> {
    const command = readCommand(await this.#text(request));
    return this.#run(command, base64);
  }

  async #path(request: Request, base64: boolean): Promise<Response> {
    const body =
      request.method === "GET" || request.method === "HEAD" ? undefined : await this.#bytes(request);
    return this.#run(readPath(new URL(request.url), body), base64);
  }

  async #run(command: readonly Argument[], base64: boolean): Promise<Response> {
    const refused = refusal(command);
    if (refused !== undefined) return answerError(400, refused);
    this.counts.commands += 1;
    const replies = await this.#redis.send([command], base64 ? FORM_BASE64 : FORM_TEXT);
    return answerOne(replies[0] as Reply);
  }

  async #pipeline(request: Request, base64: boolean): Promise<Response> {
    const commands = readCommands(await this.#text(request));
    const refusals = commands.map(refusal);
    const passed = commands.filter((_command, at) => refusals[at] === undefined);
    this.counts.commands += passed.length;
    const replies =
      passed.length === 0 ? [] : await this.#redis.send(passed, base64 ? FORM_BASE64 : FORM_TEXT);
    let next = 0;
    return answerMany(
      refusals.map((refused) =>
        refused === undefined ? (replies[next++] as Reply) : new ReplyError(refused),
      ),
    );
  }

  async #transaction(request: Request, base64: boolean): Promise<Response> {
    const commands = readCommands(await this.#text(request));
    for (const command of commands) {
      const refused = refusal(command);
      if (refused !== undefined) return answerError(400, refused);
    }
    this.counts.commands += commands.length + 2;
    const replies = await this.#redis.send(
      [["MULTI"], ...commands, ["EXEC"]],
      base64 ? FORM_BASE64_EXEC : FORM_TEXT,
    );
    const results = replies[replies.length - 1];
    if (Array.isArray(results)) return answerMany(results);
    // Redis threw the whole away. Which command it took offence at was answered when it was queued.
    const why = replies.find((reply) => reply instanceof ReplyError);
    return answerError(400, why === undefined ? "ERR the transaction was discarded" : why.message);
  }

  async #subscribe(request: Request, verb: "subscribe" | "psubscribe", channel: string): Promise<Response> {
    if (channel === "") return answerError(400, `ERR wrong number of arguments for '${verb}' command`);
    // A silent channel is no idle connection.
    this.#server.timeout(request, 0);
    const subscription = await openSubscription({
      address: this.#address,
      command: verb === "subscribe" ? "SUBSCRIBE" : "PSUBSCRIBE",
      channel,
      timeoutMs: this.#redisTimeoutMs,
      pingMs: this.#pingMs,
      gone: request.signal,
    });
    if (subscription instanceof ReplyError) return answerOne(subscription);
    this.#subscriptions.add(subscription);
    void subscription.over.then(() => this.#subscriptions.delete(subscription));
    this.counts.subscriptions += 1;
    this.counts.commands += 1;
    return subscription.response;
  }
}

/**
 * Starts a gateway. Redis is connected to by the first request, and again whenever it was lost.
 *
 * @throws {TypeError} when an option is unknown or of another kind, the token is empty or not printable ASCII without space, or the Redis URL is none.
 * @throws {RangeError} when a number is out of range.
 */
export function startGateway(options: GatewayOptions): Gateway {
  return new Gateway(options);
}

/** For callers without types: a time that no timer can be set to would end every request at once, or never. */
function checkGateway(options: GatewayOptions): void {
  const what = "the gateway";
  checkOptions(what, options, '{ token: "…" }');
  assertKnownFields("use the gateway", "", options, GATEWAY_FIELDS);
  checkText(what, "token", options.token, "give a text");
  for (const name of ["redis", "hostname"] as const) {
    if (options[name] !== undefined) checkText(what, name, options[name], "give a text, or leave it out");
  }
  if (options.port !== undefined) checkWhole(what, "port", options.port, 0, 65_535);
  if (options.maxBodyBytes !== undefined) checkWhole(what, "maxBodyBytes", options.maxBodyBytes, 1);
  for (const name of ["redisTimeoutMs", "pingMs"] as const) {
    if (options[name] !== undefined) checkTimerMs(what, name, options[name]);
  }
}

/** The path alone. Parsing a whole URL would be a good part of a request's cost. */
function pathOf(url: string): string {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  if (start < 0) return "/";
  const query = url.indexOf("?", start);
  return query < 0 ? url.slice(start) : url.slice(start, query);
}
