/**
 * The line to the server: dials, keeps a connection alive, and dials again when it dies.
 *
 * The client library's own reconnect is off: it once came back and then hung. A watchdog here pings a silent connection, and one that does not
 * answer in time is given up for a fresh one.
 *
 * @module
 */
import { type ConnectionOptions, connect } from "nats.ws";
import { BrokerError, BrokerRefusedError } from "../../src/errors.ts";
import { LONGEST_TIMER_MS } from "../../src/options.ts";
import { onAbort } from "./aborting.ts";
import { NatsConnectError, openedBy, whyNoConnection } from "./dial_failure.ts";
import type { ResolvedNatsOptions } from "./options.ts";
import { Session } from "./session.ts";
import { SteadySocket } from "./steady_socket.ts";

/** The first pause between two tries to connect, in milliseconds; it doubles. */
const FIRST_PAUSE_MS = 50;
/** A server that is only just up may refuse credentials it will know in a moment: so often in a row, and it is final. */
const REFUSALS = 3;

export class Link {
  readonly #options: ResolvedNatsOptions;
  #session: Session | undefined;
  #running = false;
  #isClosed = false;
  #refused: BrokerRefusedError | undefined;
  #lastFailure = new NatsConnectError("unopened", "nothing answered so far");
  #connectedOnce = false;
  #failures = 0;
  #refusals = 0;
  #probing = false;
  /** Wakes whoever waits for a change: connected, refused, closed. */
  #changed: (() => void)[] = [];
  /** How often a connection was dialled. */
  dials = 0;

  constructor(options: ResolvedNatsOptions) {
    this.#options = options;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The live connection, if there is one now. */
  get live(): Session | undefined {
    const session = this.#session;
    return session?.isUp === true && !this.#isClosed ? session : undefined;
  }

  /**
   * The live connection, once there is one.
   *
   * @throws {BrokerRefusedError} when the server does not let us in.
   * @throws {BrokerError} when there is none after `waitMs`, or the link is closed.
   */
  async session(verb: string, waitMs: number, signal?: AbortSignal): Promise<Session> {
    const { now } = this.#options;
    const until = now() + waitMs;
    for (;;) {
      if (this.#isClosed) {
        throw new BrokerError("nats", verb, `Cannot ${verb}: the broker is closed; open a new one`);
      }
      if (this.#refused !== undefined) throw this.#refused;
      if (this.#session?.isUp === true) return this.#session;
      this.#start();
      const leftMs = until - now();
      if (leftMs <= 0 || signal?.aborted === true) {
        throw new BrokerError(
          "nats",
          verb,
          `Cannot ${verb}: there is no connection to ${this.#origins()}: ${this.#lastFailure.message}`,
          { cause: this.#lastFailure },
        );
      }
      await this.#change(leftMs, signal);
    }
  }

  /** The connection is suspected to be dead: it has to answer now, or is given up. Resolves when that is decided; never rejects. */
  async probe(): Promise<void> {
    const session = this.#session;
    if (session === undefined || this.#probing) return;
    this.#probing = true;
    await session.flush("ping", this.#options.pongWithinMs).catch(() => session.kill());
    this.#probing = false;
  }

  /** Ends it. What was sent before has been read by the server, if that answers in time. May be called twice. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#wake();
    const session = this.#session;
    if (session?.isUp === true) {
      await session.flush("close", this.#options.pongWithinMs).catch(() => {});
      session.kill();
    }
  }

  /** The addresses as they may be shown: a path or a query can hold a token. */
  #origins(): string {
    return this.#options.urls.map((url) => new URL(url).origin).join(", ");
  }

  #start(): void {
    if (this.#running) return;
    this.#running = true;
    void this.#run();
  }

  /** Dials and dials again. Never rejects. */
  async #run(): Promise<void> {
    while (!this.#isClosed && this.#refused === undefined) {
      const session = await this.#dial();
      if (session === undefined) {
        this.#failures += 1;
        this.#wake();
        await this.#pause();
        continue;
      }
      this.#failures = 0;
      this.#refusals = 0;
      this.#connectedOnce = true;
      this.#session = session;
      if (this.#isClosed) session.kill();
      this.#wake();
      await this.#watch(session);
      this.#refused ??= session.refusal;
      this.#lastFailure = new NatsConnectError("lost", "the last one was lost");
    }
    this.#wake();
  }

  /** Between half and all of a growing pause, so that a fleet that lost its server does not come back in step. */
  async #pause(): Promise<void> {
    const { random, reconnectMaxMs, now } = this.#options;
    const ceiling = Math.min(reconnectMaxMs, FIRST_PAUSE_MS * 2 ** Math.min(this.#failures - 1, 20));
    const until = now() + ceiling * (0.5 + random() / 2);
    while (!this.#isClosed && now() < until) await this.#change(until - now());
  }

  async #dial(): Promise<Session | undefined> {
    const { urls, login, connectTimeoutMs, openWebSocket, random } = this.#options;
    const url = urls[this.dials % urls.length] as string;
    this.dials += 1;
    const inbox = `_INBOX.${Array.from({ length: 3 }, () => random().toString(36).slice(2, 12)).join("")}`;
    let socket: SteadySocket | undefined;
    let fault: unknown;
    const given = () => {
      try {
        return openedBy(openWebSocket, url);
      } catch (error) {
        fault = error;
        throw error;
      }
    };
    const options: ConnectionOptions & { wsFactory: unknown } = {
      servers: url,
      name: "eddy",
      reconnect: false,
      ignoreClusterUpdates: true,
      // Ours wakes earlier, and does not hang.
      pingInterval: 3_600_000,
      timeout: connectTimeoutMs,
      inboxPrefix: inbox,
      wsFactory: async () => {
        socket = new SteadySocket(given());
        return { socket: socket as unknown as WebSocket, encrypted: url.startsWith("wss:") };
      },
      ...(login === undefined ? {} : { authenticator: login }),
    };
    let late: ReturnType<typeof setTimeout> | undefined;
    try {
      const dialling = connect(options);
      // Whatever the library does about its own timeout, ours ends the socket and so the dial.
      late = setTimeout(() => socket?.close(), Math.min(connectTimeoutMs + 50, LONGEST_TIMER_MS));
      const nc = await dialling;
      const { origin } = new URL(url);
      return new Session(
        nc,
        socket as SteadySocket,
        origin,
        inbox,
        this.#options.now,
        () => void this.probe(),
      );
    } catch (error) {
      socket?.close();
      this.#failed(fault ?? error, url, socket);
      return undefined;
    } finally {
      clearTimeout(late);
    }
  }

  /** Remembers why a dial failed. */
  #failed(error: unknown, url: string, socket: SteadySocket | undefined): void {
    const why =
      error instanceof NatsConnectError
        ? error
        : whyNoConnection({
            code: (error as { code?: unknown } | null)?.code,
            opened: socket?.opened === true,
            hint: socket?.hint ?? "",
            secure: url.startsWith("wss:"),
            timeoutMs: this.#options.connectTimeoutMs,
          });
    this.#lastFailure = why;
    if (why.kind === "notGiven") {
      this.#refused = new BrokerRefusedError(
        "nats",
        "open",
        `Cannot open: ${why.message}; give a function that returns one, as in (url) => new WebSocket(url)`,
        { cause: why },
      );
    }
    if (why.kind !== "login") return;
    this.#refusals += 1;
    if (this.#connectedOnce && this.#refusals < REFUSALS) return;
    this.#refused = new BrokerRefusedError(
      "nats",
      "open",
      `Cannot open: ${new URL(url).origin} refuses the credentials; give the right token, user and password, nkeySeed or credentials`,
      { cause: why },
    );
  }

  /** Resolves when the connection is over. Pings it whenever it has been silent for a while. */
  async #watch(session: Session): Promise<void> {
    const { pingEveryMs } = this.#options;
    let frames = session.framesReceived;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const tick = async () => {
      if (session.framesReceived === frames) await this.probe();
      if (!session.isUp) return;
      frames = session.framesReceived;
      timer = setTimeout(tick, pingEveryMs);
    };
    timer = setTimeout(tick, pingEveryMs);
    await session.down;
    clearTimeout(timer);
  }

  #change(waitMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        unabort();
        resolve();
      };
      const timer = setTimeout(done, Math.max(1, waitMs));
      const unabort = onAbort(signal, done);
      this.#changed.push(done);
    });
  }

  #wake(): void {
    const changed = this.#changed;
    this.#changed = [];
    for (const done of changed) done();
  }
}
