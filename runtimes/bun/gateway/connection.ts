/**
 * A connection to Redis that many requests share.
 *
 * Commands of all requests are pipelined over it; those of one request stay together, so a MULTI … EXEC is never mixed
 * with others. Everything that was sent and not answered fails at once when the connection breaks; the next request
 * connects anew. A Redis that does not answer for `timeoutMs` counts as broken.
 *
 * Bun's own client is not used: it decodes replies as text, so it cannot give exact bytes back.
 *
 * @module
 */
import type { Socket } from "bun";
import type { RedisAddress } from "./redis_url.ts";
import {
  type Argument,
  encodeCommand,
  INCOMPLETE,
  type Reply,
  ReplyError,
  type ReplyForm,
  ReplyReader,
} from "./resp.ts";

/** Redis cannot be reached, or was lost before it answered. Whether the commands ran is not known. */
export class RedisLostError extends Error {
  override name = "RedisLostError";
}

interface Request {
  readonly commands: number;
  readonly form: ReplyForm;
  readonly replies: Reply[];
  readonly sentAt: number;
  resolve(replies: Reply[]): void;
  reject(error: Error): void;
}

const TEXT: ReplyForm = { base64: false, okDepth: 0 };

export class RedisConnection {
  readonly #address: RedisAddress;
  readonly #timeoutMs: number;
  #link: Link | undefined;
  #connecting: Promise<Link> | undefined;
  #closed = false;

  constructor(address: RedisAddress, timeoutMs: number) {
    this.#address = address;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Sends commands one after the other and answers all their replies, in order. Errors that Redis answers are among the
   * replies.
   *
   * @throws {RedisLostError} when Redis cannot be reached or is lost.
   */
  send(commands: readonly (readonly Argument[])[], form: ReplyForm): Promise<Reply[]> {
    const link = this.#link;
    if (link !== undefined) return link.send(commands, form);
    return this.#connect().then((fresh) => fresh.send(commands, form));
  }

  /** Ends the connection; what is under way fails. May be called twice. */
  close(): void {
    this.#closed = true;
    this.#link?.fail(new RedisLostError("The gateway is closing"));
  }

  #connect(): Promise<Link> {
    if (this.#closed) return Promise.reject(new RedisLostError("The gateway is closed"));
    this.#connecting ??= openLink(this.#address, this.#timeoutMs, () => {
      this.#link = undefined;
    })
      .then((link) => {
        if (this.#closed) {
          link.fail(new RedisLostError("The gateway is closed"));
          throw new RedisLostError("The gateway is closed");
        }
        if (link.alive) this.#link = link;
        return link;
      })
      .finally(() => {
        this.#connecting = undefined;
      });
    return this.#connecting;
  }
}

/** Connects, authenticates and picks the database. */
export async function openLink(address: RedisAddress, timeoutMs: number, onLost: () => void): Promise<Link> {
  const link = await Link.connect(address, timeoutMs, onLost);
  const greeting: string[][] = [];
  // A user without a password is one all the same: passed over, commands would run as the default user.
  if (address.password !== "" || address.username !== "") {
    greeting.push(
      address.username === "" ? ["AUTH", address.password] : ["AUTH", address.username, address.password],
    );
  }
  if (address.database !== 0) greeting.push(["SELECT", String(address.database)]);
  if (greeting.length === 0) return link;
  const replies = await link.send(greeting, TEXT);
  const refusal = replies.find((reply) => reply instanceof ReplyError);
  if (refusal !== undefined) {
    // Redis's own text names neither user nor password.
    const lost = new RedisLostError(`Redis refuses the connection: ${refusal.message}`);
    link.fail(lost);
    throw lost;
  }
  return link;
}

/** One socket and what is under way on it. */
export class Link {
  readonly #reader = new ReplyReader();
  readonly #requests: Request[] = [];
  /** The first request without all its replies; those before it are spent. */
  #first = 0;
  readonly #timeoutMs: number;
  readonly #onLost: () => void;
  #socket: Socket | undefined;
  #outgoing: (string | Uint8Array)[] = [];
  #flushing = false;
  #backlog: Uint8Array[] = [];
  #watchdog: ReturnType<typeof setInterval> | undefined;
  #onPush: ((reply: Reply) => void) | undefined;
  alive = true;

  private constructor(timeoutMs: number, onLost: () => void) {
    this.#timeoutMs = timeoutMs;
    this.#onLost = onLost;
  }

  static async connect(address: RedisAddress, timeoutMs: number, onLost: () => void): Promise<Link> {
    const link = new Link(timeoutMs, onLost);
    const where = `${address.hostname}:${address.port}`;
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      const opening = Bun.connect({
        hostname: address.hostname,
        port: address.port,
        ...(address.tls ? { tls: true } : {}),
        socket: {
          data: (_socket, chunk) => link.#received(chunk),
          drain: () => link.#write(),
          close: () => link.fail(new RedisLostError(`Lost the connection to Redis at ${where}`)),
          error: () => link.fail(new RedisLostError(`Lost the connection to Redis at ${where}`)),
          connectError: () => {},
        },
      });
      opening.then(
        (socket) => {
          if (!link.alive) socket.terminate();
        },
        () => {},
      );
      const late = new Promise<never>((_resolve, reject) => {
        timer = setTimeout(() => reject(new Error("too slow")), timeoutMs);
      });
      link.#socket = await Promise.race([opening, late]);
      link.#socket.setNoDelay(true);
      // It may have been lost between its opening and this line.
      if (!link.alive) throw new Error("lost at once");
    } catch {
      link.alive = false;
      throw new RedisLostError(`Cannot reach Redis at ${where}`);
    } finally {
      clearTimeout(timer);
    }
    link.#watchdog = setInterval(() => link.#check(), Math.max(10, Math.min(1000, timeoutMs / 4)));
    link.#watchdog.unref();
    return link;
  }

  send(commands: readonly (readonly Argument[])[], form: ReplyForm): Promise<Reply[]> {
    if (!this.alive) return Promise.reject(new RedisLostError("Lost the connection to Redis"));
    return new Promise((resolve, reject) => {
      this.#requests.push({
        commands: commands.length,
        form,
        replies: [],
        sentAt: performance.now(),
        resolve,
        reject,
      });
      for (const command of commands) this.#outgoing.push(encodeCommand(command));
      if (this.#flushing) return;
      // Requests that came in together leave in one write.
      this.#flushing = true;
      queueMicrotask(() => {
        this.#flushing = false;
        this.#flush();
      });
    });
  }

  /** From now on every reply is news of a subscription and goes to `onPush`. The link is of no other use afterwards. */
  listen(command: readonly string[], onPush: (reply: Reply) => void): void {
    this.#onPush = onPush;
    this.push(command);
  }

  /** Sends a command whose answer comes through {@linkcode Link.listen}. */
  push(command: readonly string[]): void {
    if (!this.alive) return;
    this.#outgoing.push(encodeCommand(command));
    this.#flush();
  }

  /** Ends the link: everything under way is rejected with the error. May be called twice. */
  fail(error: RedisLostError): void {
    if (!this.alive) return;
    this.alive = false;
    clearInterval(this.#watchdog);
    this.#socket?.terminate();
    const open = this.#requests.splice(0).slice(this.#first);
    this.#first = 0;
    for (const request of open) request.reject(error);
    this.#onLost();
  }

  #check(): void {
    const oldest = this.#requests[this.#first];
    if (oldest !== undefined && performance.now() - oldest.sentAt > this.#timeoutMs) {
      this.fail(new RedisLostError(`Redis did not answer within ${this.#timeoutMs} ms`));
    }
  }

  #received(chunk: Uint8Array): void {
    if (!this.alive) return;
    this.#reader.push(chunk);
    try {
      this.#work();
    } catch (error) {
      this.fail(new RedisLostError(error instanceof Error ? error.message : "Redis's answer cannot be read"));
      return;
    }
    this.#reader.keep();
  }

  #work(): void {
    for (;;) {
      const request = this.#requests[this.#first];
      const reply = this.#reader.read(request?.form ?? TEXT);
      if (reply === INCOMPLETE) break;
      if (this.#onPush !== undefined) {
        this.#onPush(reply);
        continue;
      }
      if (request === undefined) throw new Error("Redis answered what was not asked");
      request.replies.push(reply);
      if (request.replies.length < request.commands) continue;
      this.#first += 1;
      request.resolve(request.replies);
    }
    // Shifting an array for each reply would cost as much as reading it; spent ones go together.
    if (this.#first === this.#requests.length || this.#first > 1000) {
      this.#requests.splice(0, this.#first);
      this.#first = 0;
    }
  }

  #flush(): void {
    const outgoing = this.#outgoing;
    this.#outgoing = [];
    let text = "";
    for (const part of outgoing) {
      if (typeof part === "string") {
        text += part;
        continue;
      }
      if (text !== "") this.#put(text);
      text = "";
      this.#put(part);
    }
    if (text !== "") this.#put(text);
  }

  #put(data: string | Uint8Array): void {
    if (this.#backlog.length > 0) {
      this.#backlog.push(typeof data === "string" ? Buffer.from(data) : data);
      return;
    }
    const written = this.#socket?.write(data) ?? 0;
    const size = typeof data === "string" ? Buffer.byteLength(data) : data.length;
    if (written < size) {
      const bytes = typeof data === "string" ? Buffer.from(data) : data;
      this.#backlog.push(bytes.subarray(Math.max(0, written)));
    }
  }

  #write(): void {
    while (this.#backlog.length > 0) {
      const next = this.#backlog[0] as Uint8Array;
      const written = Math.max(0, this.#socket?.write(next) ?? 0);
      if (written < next.length) {
        this.#backlog[0] = next.subarray(written);
        return;
      }
      this.#backlog.shift();
    }
  }
}
