/**
 * Subscriptions as server-sent events: `POST /subscribe/CHANNEL` and `POST /psubscribe/PATTERN`.
 *
 * Each has a Redis connection of its own, so a reader that is slow or gone touches nobody else.
 *
 * @module
 */
import { type Link, openLink, RedisLostError } from "./connection.ts";
import type { RedisAddress } from "./redis_url.ts";
import { type Reply, ReplyError } from "./resp.ts";

const encoder = new TextEncoder();
const PING_LINE = encoder.encode(": ping\n\n");
/** A reader that is so many bytes behind is cut off when the next news comes: what waits for it would fill the gateway's memory. */
const MOST_BEHIND_BYTES = 16 * 1024 * 1024;

export interface SubscriptionOptions {
  readonly address: RedisAddress;
  readonly command: "SUBSCRIBE" | "PSUBSCRIBE";
  readonly channel: string;
  readonly timeoutMs: number;
  /**
   * Every so many milliseconds Redis is pinged, and its answer is passed on as a comment line (`: ping`). Readers skip it,
   * proxies keep the connection for it, and a reader that counts on it can tell a silent channel from a dead one.
   */
  readonly pingMs: number;
  /** The request's signal: its abort means that the reader has gone. */
  readonly gone: AbortSignal;
}

/** A live subscription: the answer to stream, and how to end it. */
export interface Subscription {
  readonly response: Response;
  /** Resolves when it is over, whoever ended it. */
  readonly over: Promise<void>;
  close(): void;
}

/**
 * Answers once Redis has confirmed the subscription, or has refused it.
 *
 * @throws {RedisLostError} when Redis cannot be reached, or does not answer.
 */
export async function openSubscription(options: SubscriptionOptions): Promise<Subscription | ReplyError> {
  const over = Promise.withResolvers<void>();
  const first = Promise.withResolvers<Reply>();
  // It may be over before anybody waits.
  first.promise.catch(() => {});
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let link: Link | undefined;
  let ping: ReturnType<typeof setInterval> | undefined;
  /** When Redis was asked for a sign of life that it has not given. */
  let askedAt: number | undefined;
  let ended = false;

  const end = () => {
    if (ended) return;
    ended = true;
    clearInterval(ping);
    options.gone.removeEventListener("abort", end);
    link?.fail(new RedisLostError("The subscription is over"));
    try {
      // Ended rather than broken off when Redis is lost, too: a subscription never ends by itself, so its reader knows.
      controller?.close();
    } catch {
      // The reader has closed it first.
    }
    over.resolve();
    first.reject(new RedisLostError("Lost the connection to Redis"));
  };

  link = await openLink(options.address, options.timeoutMs, end);
  const opened = link;
  const ask = () => {
    // A Redis that stands still breaks no connection, and would go on to be listened to.
    if (askedAt !== undefined && performance.now() - askedAt > options.timeoutMs) return end();
    askedAt ??= performance.now();
    opened.push(["PING"]);
  };
  const source: UnderlyingDefaultSource<Uint8Array> = {
    start(stream) {
      controller = stream;
      // Lost right after it was there.
      if (ended) return;
      opened.listen([options.command, options.channel], (reply) => {
        first.resolve(reply);
        askedAt = undefined;
        if (ended) return;
        if ((stream.desiredSize ?? 0) < -MOST_BEHIND_BYTES) {
          // Closed, it would still be given all that waits for it.
          stream.error(new Error("The reader is too slow"));
          return end();
        }
        stream.enqueue(isPong(reply) ? PING_LINE : encoder.encode(toEvent(reply)));
      });
      ping = setInterval(ask, options.pingMs);
    },
    cancel: end,
  };
  const body = new ReadableStream(source, new ByteLengthQueuingStrategy({ highWaterMark: 0 }));
  options.gone.addEventListener("abort", end);
  if (options.gone.aborted) end();
  const late = setTimeout(end, options.timeoutMs);
  const confirmation = await first.promise.finally(() => clearTimeout(late));
  if (confirmation instanceof ReplyError) {
    end();
    return confirmation;
  }
  const headers = { "content-type": "text/event-stream", "cache-control": "no-cache" };
  return { response: new Response(body, { headers }), over: over.promise, close: end };
}

function isPong(reply: Reply): boolean {
  return Array.isArray(reply) && reply[0] === "pong";
}

/** A line for each line of the text: a bare newline in a message would end the event in its middle. */
function toEvent(reply: Reply): string {
  const text = Array.isArray(reply)
    ? reply.join(",")
    : reply instanceof ReplyError
      ? reply.message
      : String(reply);
  return `data: ${text.replace(/\r\n|\r|\n/g, "\ndata: ")}\n\n`;
}
