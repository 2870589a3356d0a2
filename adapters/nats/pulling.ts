/**
 * One pull on one lane, with an end that does not depend on the server's.
 *
 * nats-server 2.9 ends a pull without a word when its time runs out in the middle of its messages, and answers nothing at all when the consumer is gone.
 *
 * @module
 */
import { BrokerError } from "../../src/errors.ts";
import type { Timeout } from "../../src/shared_timer.ts";
import type { Core } from "./core.ts";
import type { Incoming } from "./incoming.ts";
import type { Lane } from "./lane.ts";
import { type Line, LinePull, type PullEnd } from "./line.ts";
import { type Raw, receive } from "./raw.ts";
import type { Session } from "./session.ts";

/** How long a pull may bring nothing after its wait is over, in milliseconds, before it is asked for again. */
const UNANSWERED_MS = 250;
/** How long it may bring nothing then before it is ended from here. */
const QUIET_MS = 250;
/** A wait shorter than this is not left to the server: its time could run out while it hands out what has just come. */
const LEAST_WAIT_MS = 50;
/** The longest gap between looks at a lane whose jobs others hold: this share of the lease. */
const PROBE_SHARE = 1 / 4;

/** The claim that a pull is for. */
export interface PullOwner {
  readonly signal: AbortSignal | undefined;
  /** When an answer is given up, on the broker's clock. */
  readonly failAt: number;
  /** Is given each message; `late` when the pull had been given up by then. */
  took(raw: Raw, late: boolean): void;
  /** Whether there is a reason to end a wait that ends by itself at `until`. */
  hasNews(until: number): boolean;
}

/** Who is told how a pull ended: one of the two, once. */
export interface PullListener {
  ended(got: number): void;
  failed(error: Error): void;
}

/**
 * Pulls once. Answers how many messages came.
 *
 * @param sentAt what the broker's clock says: the server's leases begin no earlier.
 * @param waitMs how long to wait for a first message, in milliseconds.
 * @throws {BrokerError} when the connection dies, does not answer by `failAt`, or the server ends the pull with an error.
 */
export function pullOnce(
  core: Core,
  session: Session,
  lane: Lane,
  owner: PullOwner,
  batch: number,
  waitMs: number,
  sentAt: number,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const listener = { ended: resolve, failed: reject };
    new Pulling(core, session, lane, owner, listener, batch, sentAt).start(waitMs);
  });
}

/** One pull. */
export class Pulling extends LinePull {
  readonly #core: Core;
  readonly #session: Session;
  readonly #lane: Lane;
  readonly #owner: PullOwner;
  readonly #listener: PullListener;
  readonly #sentAt: number;
  readonly #line: Line;
  /** When its wait ends by itself. */
  #until = 0;
  #gotBefore = 0;
  #isQuiet = false;
  #isLate = false;
  /** Whether one of them was handed out before. */
  #isAgain = false;
  #timeout: Timeout | undefined;

  constructor(
    core: Core,
    session: Session,
    lane: Lane,
    owner: PullOwner,
    listener: PullListener,
    batch: number,
    sentAt: number,
  ) {
    super(batch);
    this.#core = core;
    this.#session = session;
    this.#lane = lane;
    this.#owner = owner;
    this.#listener = listener;
    this.#sentAt = sentAt;
    this.#line = core.line(session, lane);
  }

  get signal(): AbortSignal | undefined {
    return this.#owner.signal;
  }

  /** Sends it. To be called once. */
  start(waitMs: number): void {
    const { failAt } = this.#owner;
    this.#until = this.#sentAt + waitMs;
    // News may have come since the wait was decided on.
    const waits = waitMs >= LEAST_WAIT_MS && !this.#owner.hasNews(this.#until);
    this.#line.pull(this, waits ? waitMs : 0);
    if (this.isOver) return;
    // It is on its way: what watches over it is set up while the server works.
    const firstMs = Math.min((waits ? waitMs : 0) + UNANSWERED_MS, Math.max(1, failAt - this.#sentAt));
    this.#watch(firstMs, this.#unanswered, this.#sentAt);
    if (waits) this.#core.waiting.add(this);
  }

  /** Something came in that its wait may end for. */
  heard(): void {
    if (this.#owner.hasNews(this.#until)) this.endWait();
  }

  /** Its wait ends: it is answered with what is there. */
  endWait(): void {
    this.#line.retire();
  }

  override take(message: Incoming): void {
    const raw = receive(this.#lane, message, this.#sentAt);
    if (raw === undefined) return;
    if (raw.info.delivered > 1) this.#isAgain = true;
    this.#owner.took(raw, this.isOver);
  }

  override ended(end: PullEnd): void {
    const lane = this.#lane;
    const core = this.#core;
    this.#finish();
    if (this.#isAgain) lane.handedOutAgain(core.now());
    if (this.#isQuiet && this.got === 0) {
      // The server answered everything else: the consumer may be gone, and is looked at again.
      lane.seenOver = undefined;
      if (this.#isLate) {
        const why = `Cannot claim: ${this.#session.origin} did not answer in time`;
        return this.#listener.failed(new BrokerError("nats", "claim", why));
      }
    }
    if (end !== "full") lane.ranShort(core.now(), Math.max(250, core.leaseMs * PROBE_SHARE));
    this.#listener.ended(this.got);
  }

  override failed(error: Error): void {
    this.#lane.seenOver = undefined;
    this.#finish();
    this.#listener.failed(error);
  }

  #finish(): void {
    this.isOver = true;
    this.#timeout?.cancel();
    this.#core.waiting.delete(this);
    this.#core.putBack(this.#line);
  }

  #watch(ms: number, fn: () => void, now?: number): void {
    this.#timeout = this.#session.timer.start(ms, fn, now);
  }

  readonly #unanswered = (): void => {
    const leftMs = this.#owner.failAt - this.#core.now();
    // Once: a server that only stands still would hand out a batch for each.
    if (leftMs > 1) this.#line.askAgain();
    this.#watch(Math.min(QUIET_MS, Math.max(1, leftMs)), this.#quiet);
  };

  readonly #quiet = (): void => {
    if (this.got > this.#gotBefore) {
      // Messages are on their way still.
      this.#gotBefore = this.got;
      return this.#watch(UNANSWERED_MS + QUIET_MS, this.#quiet);
    }
    this.#isQuiet = true;
    this.#line.retire();
    this.#watch(Math.max(1, this.#owner.failAt - this.#core.now()), () => {
      this.#isLate = true;
      this.#line.giveUp();
    });
  };
}
