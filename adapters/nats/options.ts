/**
 * The options of a NATS broker: what they mean, their defaults, and their checks, in one place.
 *
 * @module
 */
import type { Authenticator } from "nats.ws";
import { assertKnownFields, isRecord, kindOf } from "../../src/known_fields.ts";
import { checkFunction, checkOptions, checkText, checkTimerMs, checkWhole } from "../checks.ts";
import { type LoginOptions, readLogin } from "./login.ts";

/** A stream and a consumer that are there already and feed a queue with jobs. */
export interface NatsSource {
  readonly stream: string;
  /** A durable pull consumer of that stream. */
  readonly consumer: string;
}

export interface NatsBrokerOptions extends LoginOptions {
  /** The addresses of the servers' WebSocket listeners, `ws://…` or `wss://…`, without credentials. */
  readonly url: string | readonly string[];
  /**
   * What the names of streams begin with; in lower case, what subjects begin with: two prefixes that differ in case only have the same subjects, and the
   * second is refused. Letters, digits, `_` and `-`. Default `EDDY`.
   */
  readonly prefix?: string | undefined;
  /** Where streams that are made are kept. `memory` loses all jobs when the server restarts. Default `file`. */
  readonly storage?: "file" | "memory" | undefined;
  /** On how many servers of a cluster streams that are made are kept. Default 1. */
  readonly replicas?: number | undefined;
  /**
   * By queue: a stream and consumer of yours whose messages are jobs of it too. Nothing is made there; jobs are acked, and removed when they run out of
   * `max_deliver`. Names of queues that nobody opens are not noticed.
   */
  readonly sources?: Readonly<Record<string, NatsSource>> | undefined;
  /**
   * The least `max_deliver` that a source's consumer may have. It must be above `maxAttempts` of the queue's workers, since the server
   * counts hand-outs that we do not charge. Default 1,000.
   */
  readonly leastMaxDeliver?: number | undefined;
  /** How long a connection may take to come about, in milliseconds. Default 2,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** How long a silent connection is trusted, in milliseconds, before it must answer a ping. Default 2,000. */
  readonly pingEveryMs?: number | undefined;
  /** How long the answer to a ping may take, in milliseconds, before a fresh connection is opened. Default 2,000. */
  readonly pongWithinMs?: number | undefined;
  /** The longest pause between two tries to connect, in milliseconds; they grow from 50 and are spread at random. Default 1,000. */
  readonly reconnectMaxMs?: number | undefined;
  /** How WebSockets are opened; by default the runtime's own. A Platform's `openWebSocket` fits. */
  readonly openWebSocket?: ((url: string) => WebSocket) | undefined;
  /** Monotonic milliseconds. Default `performance.now()`. */
  readonly now?: (() => number) | undefined;
  /** A number in [0, 1). Default `Math.random()`. */
  readonly random?: (() => number) | undefined;
}

export interface ResolvedNatsOptions {
  readonly urls: readonly string[];
  /** What logs in; `undefined` where nobody does. */
  readonly login: Authenticator | undefined;
  readonly prefix: string;
  readonly storage: "file" | "memory";
  readonly replicas: number;
  readonly sources: Readonly<Record<string, NatsSource>>;
  readonly leastMaxDeliver: number;
  readonly connectTimeoutMs: number;
  readonly pingEveryMs: number;
  readonly pongWithinMs: number;
  readonly reconnectMaxMs: number;
  readonly openWebSocket: (url: string) => WebSocket;
  readonly now: () => number;
  readonly random: () => number;
}

const WHAT = "the NATS broker";
const OPTION_FIELDS: ReadonlySet<string> = new Set<keyof NatsBrokerOptions>([
  "url",
  "token",
  "user",
  "password",
  "nkeySeed",
  "credentials",
  "prefix",
  "storage",
  "replicas",
  "sources",
  "leastMaxDeliver",
  "connectTimeoutMs",
  "pingEveryMs",
  "pongWithinMs",
  "reconnectMaxMs",
  "openWebSocket",
  "now",
  "random",
]);
const SOURCE_FIELDS: ReadonlySet<string> = new Set<keyof NatsSource>(["stream", "consumer"]);
const PREFIX = /^[A-Za-z0-9_-]{1,60}$/;
/** What may stand in a stream's or consumer's name and in a subject's token. */
const NAME = /^[^\s.*>/\\]{1,200}$/;

/**
 * Fills in the defaults.
 *
 * @throws {TypeError} when an option is unknown or of the wrong kind, or an address, a credential or a name cannot be used; the text repeats none of them.
 * @throws {RangeError} when a number is out of range.
 */
export function resolveNatsOptions(options: NatsBrokerOptions): ResolvedNatsOptions {
  checkOptions(WHAT, options, "{ url }");
  assertKnownFields(`use ${WHAT}`, "", options, OPTION_FIELDS);
  const urls = readUrls(options.url);
  const prefix = options.prefix ?? "EDDY";
  if (typeof prefix !== "string" || !PREFIX.test(prefix))
    refuse("prefix is faulty; use 1 to 60 of A-Z a-z 0-9 _ -");
  const storage = options.storage ?? "file";
  if (storage !== "file" && storage !== "memory") refuse('storage is neither "file" nor "memory"');
  const { openWebSocket = (url: string) => new WebSocket(url) } = options;
  checkFunction(WHAT, "openWebSocket", openWebSocket, "(url) => new WebSocket(url)");
  const { now = () => performance.now(), random = () => Math.random() } = options;
  checkFunction(WHAT, "now", now, "() => performance.now()");
  checkFunction(WHAT, "random", random, "() => Math.random()");
  return Object.freeze<ResolvedNatsOptions>({
    urls: Object.freeze(urls),
    login: readLogin(options),
    prefix,
    storage,
    replicas: checkWhole(WHAT, "replicas", options.replicas ?? 1, 1, 5),
    sources: Object.freeze(checkSources(options.sources)),
    leastMaxDeliver: checkWhole(WHAT, "leastMaxDeliver", options.leastMaxDeliver ?? 1000, 1),
    connectTimeoutMs: checkTimerMs(WHAT, "connectTimeoutMs", options.connectTimeoutMs ?? 2_000),
    pingEveryMs: checkTimerMs(WHAT, "pingEveryMs", options.pingEveryMs ?? 2_000),
    pongWithinMs: checkTimerMs(WHAT, "pongWithinMs", options.pongWithinMs ?? 2_000),
    reconnectMaxMs: checkTimerMs(WHAT, "reconnectMaxMs", options.reconnectMaxMs ?? 1_000),
    openWebSocket,
    now,
    random,
  });
}

function readUrls(given: unknown): readonly string[] {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  const mend = "give the address of a WebSocket listener as a text, as in wss://host";
  if (list.length === 0) refuse(`url is an empty array; ${mend}`);
  return list.map((one) => checkUrl(checkText(WHAT, list === given ? "one of url" : "url", one, mend)));
}

function checkUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "ws:" && url.protocol !== "wss:")) {
    refuse("url is no ws:// or wss:// address; give that of the server's WebSocket listener");
  }
  if (url.username !== "" || url.password !== "") {
    refuse("url has credentials in it; give them as token, user and password, nkeySeed or credentials");
  }
  if (url.hash !== "") refuse("url has a fragment (#…), which no WebSocket's address may have; leave it out");
  return url.href.replace(/\/$/, "");
}

function checkSources(sources: NatsBrokerOptions["sources"] = {}): Record<string, NatsSource> {
  // Without a prototype: a queue may be named "constructor", and has no source for that.
  const checked: Record<string, NatsSource> = Object.create(null);
  if (!isRecord(sources)) refuse(`sources is ${kindOf(sources)}; give an object from queues to sources`);
  for (const [queue, source] of Object.entries(sources)) {
    const { stream, consumer } = source ?? {};
    if (!isName(stream) || !isName(consumer)) {
      refuse(
        `sources.${queue.slice(0, 60)} names no stream and consumer; give both, without . * > / or space`,
      );
    }
    assertKnownFields(`use ${WHAT}`, `sources.${queue.slice(0, 60)}`, source, SOURCE_FIELDS);
    checked[queue] = Object.freeze({ stream, consumer });
  }
  return checked;
}

function isName(text: unknown): text is string {
  return typeof text === "string" && NAME.test(text);
}

function refuse(why: string): never {
  throw new TypeError(`Cannot use ${WHAT}: ${why}`);
}
