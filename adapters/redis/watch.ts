/**
 * The subscription that wakes an idle worker: server-sent events over one long request.
 *
 * @module
 */
import { BrokerError } from "../../src/errors.ts";
import { answeredError, failure, isPassing, isRedirect, redirected, refusedToken } from "./failure.ts";

/** Published by a watch that has heard nothing for long, to hear itself. Wakes nobody; any other text does. */
export const PING = "ping";

export interface WatchOptions {
  readonly url: string;
  readonly token: string;
  readonly channel: string;
  readonly timeoutMs: number;
  /** How long nothing at all may be heard before it is made sure that something could be, in milliseconds; sooner, see {@linkcode silenceOf}. */
  readonly silenceMs: number;
  readonly onRequest: () => void;
  readonly onWake: () => void;
  /** Called once, when it breaks after it was confirmed. Not when it was closed. */
  readonly onEnd: (error: BrokerError) => void;
  /** Publishes {@linkcode PING} on the channel. */
  readonly ping: () => Promise<unknown>;
}

/**
 * Subscribes. Resolves once Redis has confirmed it, so nothing published from then on is missed. Answers a function that ends it.
 *
 * @throws {BrokerError} when there is no such endpoint, or no confirmation in time.
 */
export async function subscribe(options: WatchOptions): Promise<() => void> {
  const abort = new AbortController();
  const confirmed = Promise.withResolvers<void>();
  const late = setTimeout(() => abort.abort(), options.timeoutMs);
  try {
    const body = await request(options, abort.signal);
    const stream = new EventStream(options, body, abort, confirmed);
    abort.signal.addEventListener("abort", () => confirmed.reject(new Error("no confirmation in time")));
    await confirmed.promise;
    return () => stream.close();
  } catch (error) {
    const timedOut = abort.signal.aborted;
    abort.abort();
    throw failure(error, {
      verb: "watch",
      origin: new URL(options.url).origin,
      timeoutMs: options.timeoutMs,
      timedOut,
    });
  } finally {
    clearTimeout(late);
  }
}

async function request(options: WatchOptions, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  options.onRequest();
  const response = await fetch(`${options.url}/subscribe/${encodeURIComponent(options.channel)}`, {
    method: "POST",
    redirect: "manual",
    headers: { authorization: `Bearer ${options.token}`, accept: "text/event-stream" },
    signal,
  });
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (response.ok && isStream && response.body !== null) return response.body;
  await response.body?.cancel();
  const { origin } = new URL(options.url);
  if (isRedirect(response)) throw redirected("watch", origin);
  if (response.status === 401) throw refusedToken("watch", origin);
  if (isPassing(response.status)) throw answeredError("watch", origin, `HTTP ${response.status}`);
  throw new BrokerError(
    "redis",
    "watch",
    `Cannot watch: ${origin} has no subscriptions over HTTP (it answered ${response.status}); new work is found by polling`,
  );
}

/** So many beats of a server may be missing. */
const MISSING_BEATS = 2;
/** Beats that came together on their way say little of their pace, in milliseconds. */
const LEAST_SILENCE_MS = 1_000;

/**
 * How long may nothing be heard, in milliseconds? Where the server sends signs of life (comment lines) by itself, the pace is known at which they come. Pure.
 *
 * @param beatMs the longest time between two of them, and before the first; `undefined` where none came.
 */
export function silenceOf(beatMs: number | undefined, silenceMs: number): number {
  if (beatMs === undefined) return silenceMs;
  return Math.min(silenceMs, Math.max(LEAST_SILENCE_MS, beatMs * MISSING_BEATS));
}

/** The longest line that is waited for; a wake-up has some thirty characters. */
const MAX_LINE = 65_536;

/** Reads the events, and makes sure that they could come. */
class EventStream {
  readonly #options: WatchOptions;
  readonly #abort: AbortController;
  readonly #confirmed: PromiseWithResolvers<void>;
  #open = true;
  #isConfirmed = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** When the server gave its last sign of life, or confirmed. */
  #beatAt: number | undefined;
  #longestBeatMs: number | undefined;

  constructor(
    options: WatchOptions,
    body: ReadableStream<Uint8Array>,
    abort: AbortController,
    confirmed: PromiseWithResolvers<void>,
  ) {
    this.#options = options;
    this.#abort = abort;
    this.#confirmed = confirmed;
    void this.#read(body);
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    clearTimeout(this.#timer);
    this.#abort.abort();
  }

  #broke(why: string): void {
    if (!this.#open) return;
    this.close();
    const error = new BrokerError("redis", "watch", `The subscription ended: ${why}`);
    if (this.#isConfirmed) this.#options.onEnd(error);
    else this.#confirmed.reject(error);
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    let text = "";
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return this.#broke("the server closed it");
        text += decoder.decode(value, { stream: true });
        const lines = text.split("\n");
        text = lines.pop() ?? "";
        if (text.length > MAX_LINE) return this.#broke("a line was too long");
        for (const line of lines) this.#line(line);
        this.#heard();
      }
    } catch {
      this.#broke("the connection was lost");
    } finally {
      reader.cancel().catch(() => {});
    }
  }

  #line(line: string): void {
    if (line.startsWith(":")) this.#beat();
    if (!this.#open || !line.startsWith("data:")) return;
    const data = line.slice(5).trimStart();
    if (data.startsWith("subscribe,")) {
      this.#isConfirmed = true;
      this.#beatAt = performance.now();
      this.#confirmed.resolve();
    } else if (data.startsWith("message,") && !data.endsWith(`,${PING}`)) this.#options.onWake();
  }

  #beat(): void {
    if (this.#beatAt === undefined) return;
    const now = performance.now();
    this.#longestBeatMs = Math.max(now - this.#beatAt, this.#longestBeatMs ?? 0);
    this.#beatAt = now;
  }

  /** Any sign of life starts the silence anew. */
  #heard(): void {
    clearTimeout(this.#timer);
    if (!this.#open) return;
    this.#timer = setTimeout(() => this.#probe(), silenceOf(this.#longestBeatMs, this.#options.silenceMs));
  }

  /** A half-open connection looks like a silent channel. What is published comes back through a live one. */
  #probe(): void {
    // Where signs of life stay away, news may have done so too: that is not waited for.
    if (this.#longestBeatMs !== undefined) this.#options.onWake();
    this.#timer = setTimeout(
      () => this.#broke("it is silent, and does not hear itself"),
      this.#options.timeoutMs,
    );
    // If it cannot be sent, the timer decides.
    this.#options.ping().catch(() => {});
  }
}
