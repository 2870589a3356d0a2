/**
 * The options of a Redis broker: what they mean, their defaults, and their checks, in one place.
 *
 * @module
 */

import { assertKnownFields } from "../../src/known_fields.ts";
import { checkFunction, checkOptions, checkText, checkTimerMs, checkWhole } from "../checks.ts";

export interface RedisBrokerOptions {
  /** The address of Redis over HTTP, `https://…` or `http://…`, without credentials. */
  readonly url: string;
  /** What is sent as `Authorization: Bearer …`. */
  readonly token: string;
  /** What all keys begin with; letters, digits and `_ . : -`. Default `eddy`. */
  readonly prefix?: string;
  /**
   * What to do about a Redis that may throw keys away (a `maxmemory-policy` other than `noeviction`), or has done so since the queue was
   * opened. `refuse`, the default: neither start nor go on. `ignore`: run all the same, and lose jobs when it does.
   */
  readonly onEvictions?: "refuse" | "ignore";
  /** How often a claim also brings what the guard against evictions reads, in milliseconds. Default 60,000. */
  readonly verifyEveryMs?: number;
  /**
   * How long a watch may hear nothing at all before it makes sure that it is alive, in milliseconds. Default 60,000. A server that sends signs of
   * life by itself, as the development gateway does every 2,000, is doubted as soon as two of them are missing.
   */
  readonly watchSilenceMs?: number;
  /** The largest body in bytes. Default 1,048,576: even if each byte must be escaped, one fits into a request of 10 MB. */
  readonly maxBodyBytes?: number;
  /** The largest request in bytes; an enqueue that is larger goes in parts. Default 8,000,000, below Upstash's 10 MB. */
  readonly maxRequestBytes?: number;
  /**
   * How many bytes of jobs one claim brings at most, before JSON's escapes; a claim that would bring more is cut short, to one job at
   * least. Default 4,000,000: a reply too large for the way back would never arrive.
   */
  readonly maxReplyBytes?: number;
  /** Told what could not be checked, and of a Redis without an append-only file; each text once. Default: one line on the console. */
  readonly onWarning?: (text: string) => void;
}

export type ResolvedRedisOptions = Readonly<Required<RedisBrokerOptions>>;

const WHAT = "the Redis broker";
const PREFIX = /^[A-Za-z0-9_.:-]{1,100}$/;

const OPTION_FIELDS: ReadonlySet<string> = new Set<keyof RedisBrokerOptions>([
  "url",
  "token",
  "prefix",
  "onEvictions",
  "verifyEveryMs",
  "watchSilenceMs",
  "maxBodyBytes",
  "maxRequestBytes",
  "maxReplyBytes",
  "onWarning",
]);

/**
 * Fills in the defaults.
 *
 * @throws {TypeError} when an option is unknown, or url, token or prefix cannot be used; the text repeats neither url nor token.
 * @throws {RangeError} when a number is out of range.
 */
export function resolveRedisOptions(options: RedisBrokerOptions): ResolvedRedisOptions {
  checkOptions(WHAT, options, "{ url, token }");
  assertKnownFields("use the Redis broker", "", options, OPTION_FIELDS);
  const address = checkText(WHAT, "url", options.url, "give the REST address as a text, as in https://host");
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw new TypeError(
      "Cannot use the Redis broker: url is no http(s) address; give the REST address, as in https://host",
    );
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw new TypeError(
      "Cannot use the Redis broker: url has credentials, a query or a fragment; give the token as the option token",
    );
  }
  const token = checkText(WHAT, "token", options.token, "give the REST token");
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new TypeError(
      `Cannot use the Redis broker: token ${token === "" ? "is empty" : "has spaces or unprintable characters"}; give the REST token`,
    );
  }
  const prefix = options.prefix ?? "eddy";
  if (typeof prefix !== "string" || !PREFIX.test(prefix)) {
    throw new TypeError(
      `Cannot use the Redis broker: prefix is ${JSON.stringify(String(prefix).slice(0, 60))}; use 1 to 100 of A-Z a-z 0-9 _ . : -`,
    );
  }
  const onEvictions = options.onEvictions ?? "refuse";
  if (onEvictions !== "refuse" && onEvictions !== "ignore") {
    throw new TypeError('Cannot use the Redis broker: onEvictions is neither "refuse" nor "ignore"');
  }
  const onWarning = options.onWarning ?? ((text) => console.warn(text));
  checkFunction(WHAT, "onWarning", onWarning, "(text) => console.warn(text)");
  return Object.freeze({
    // As it was read: a text may end in what an address does not have (a bare `?`, a space), and paths are put behind it.
    url: `${url.origin}${url.pathname}`.replace(/\/+$/, ""),
    token,
    prefix,
    onEvictions,
    verifyEveryMs: checkWhole(WHAT, "verifyEveryMs", options.verifyEveryMs ?? 60_000, 1),
    watchSilenceMs: checkTimerMs(WHAT, "watchSilenceMs", options.watchSilenceMs ?? 60_000),
    maxBodyBytes: checkWhole(WHAT, "maxBodyBytes", options.maxBodyBytes ?? 1_048_576, 1),
    maxRequestBytes: checkWhole(WHAT, "maxRequestBytes", options.maxRequestBytes ?? 8_000_000, 1),
    maxReplyBytes: checkWhole(WHAT, "maxReplyBytes", options.maxReplyBytes ?? 4_000_000, 1),
    onWarning,
  });
}
