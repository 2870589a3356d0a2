/**
 * One pull on one lane, with an end that does not depend on the server's.
 *
 * nats-server 2.9 ends a pull without a word when its time runs out in the middle of its messages, and answers nothing at all when the consumer is gone.
 *
 * @module
 */
import { BrokerError } from "../../src/errors.ts";
import type { CancelTimer } from "../../src/platform.ts";
import { onAbort } from "./aborting.ts";
import type { Core } from "./core.ts";
import { type Raw, receive } from "./deliveries.ts";
import type { Incoming } from "./incoming.ts";
import type { Lane } from "./lane.ts";
import type { Line, LinePull, PullEnd } from "./line.ts";
import type { Session } from "./session.ts";

/** How long a pull may bring nothing after its wait is over, in milliseconds, before it is asked for again. */
const UNANSWERED_MS = 250;
/** How long it may bring nothing then before it is ended from here. */
const QUIET_MS = 250;
/** A wait shorter than this is not left to the server: its time could run out while it hands out what has just come. */
const LEAST_WAIT_MS = 50;
/** The longest gap between looks at a lane whose jobs others hold: this share of the lease. */
const PROBE_SHARE = 1 / 4;

export interface PullOptions {
  readonly session: Session;
  readonly lane: Lane;
  readonly batch: number;
  /** What the broker's clock says: the server's leases begin no earlier. */
  readonly sentAt: number;
  /** How long to wait for a first message, in milliseconds. */
  readonly waitMs: number;
  /** When an answer is given up, on the broker's clock. */
  readonly failAt: number;
  readonly signal: AbortSignal | undefined;
  /** Is given each message; `late` when the pull had been given up by then. */
  readonly take: (raw: Raw, late: boolean) => void;
  /** Whether there is a reason to end the wait. `until`: when it ends by itself. */
  readonly hasNews: (until: number) => boolean;
}

/**
 * Pulls once. Answers how many messages came.
 *
 * @throws {BrokerError} when the connection dies, does not answer by `failAt`, or the server ends the pull with an error.
 */
export function pullOnce(core: Core, options: PullOptions): Promise<number> {
  return new Promise((resolve, reject) => new Pulling(core, options, resolve, reject));
}

class Pulling implements LinePull {
  readonly #core: Core;
  readonly #options: PullOptions;
  readonly #resolve: (got: number) => void;
  readonly #reject: (error: Error) => void;
  readonly #line: Line;
  readonly #sentAt: number;
  #got = 0;
  #gotBefore = 0;
  #isOver = false;
  #isQuiet = false;
  #isLate = false;
  /** Whether one of them was handed out before. */
  #isAgain = false;
  #cancel: CancelTimer = nothing;
  #unlisten = nothing;
  #unabort = nothing;

  constructor(
    core: Core,
    options: PullOptions,
    resolve: (got: number) => void,
    reject: (error: Error) => void,
  ) {
    this.#core = core;
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
    const { session, lane, batch, waitMs, failAt, signal, sentAt, hasNews } = options;
    this.#sentAt = sentAt;
    this.#line = core.line(session, lane);
    const until = sentAt + waitMs;
    // News may have come since the wait was decided on.
    const waits = waitMs >= LEAST_WAIT_MS && !hasNews(until);
    this.#line.pull(batch, waits ? waitMs : 0, this);
    if (this.#isOver) return;
    // It is on its way: what watches over it is set up while the server works.
    const firstMs = Math.min((waits ? waitMs : 0) + UNANSWERED_MS, Math.max(1, failAt - sentAt));
    this.#cancel = session.timer.setTimer(firstMs, this.#unanswered, sentAt);
    if (!waits) return;
    this.#unlisten = core.listen(() => {
      if (hasNews(until)) this.#line.retire();
    });
    this.#unabort = onAbort(signal, () => this.#line.retire());
  }

  take(message: Incoming): void {
    this.#got += 1;
    const raw = receive(this.#options.lane, message, this.#sentAt);
    if (raw === undefined) return;
    if (raw.info.delivered > 1) this.#isAgain = true;
    this.#options.take(raw, this.#isOver);
  }

  ended(end: PullEnd): void {
    const { session, lane } = this.#options;
    const core = this.#core;
    this.#finish();
    if (this.#isAgain) lane.handedOutAgain(core.now());
    if (this.#isQuiet && this.#got === 0) {
      // The server answered everything else: the consumer may be gone, and is looked at again.
      lane.seenOver = undefined;
      if (this.#isLate) {
        const why = `Cannot claim: ${session.origin} did not answer in time`;
        return this.#reject(new BrokerError("nats", "claim", why));
      }
    }
    if (end !== "full") lane.ranShort(core.now(), Math.max(250, core.leaseMs * PROBE_SHARE));
    this.#resolve(this.#got);
  }

  failed(error: Error): void {
    this.#options.lane.seenOver = undefined;
    this.#finish();
    this.#reject(error);
  }

  #finish(): void {
    this.#isOver = true;
    this.#cancel();
    this.#unlisten();
    this.#unabort();
    this.#core.putBack(this.#line);
  }

  readonly #unanswered = (): void => {
    const { session, failAt } = this.#options;
    const leftMs = failAt - this.#core.now();
    // Once: a server that only stands still would hand out a batch for each.
    if (leftMs > 1) this.#line.askAgain();
    this.#cancel = session.timer.setTimer(Math.min(QUIET_MS, Math.max(1, leftMs)), this.#quiet);
  };

  readonly #quiet = (): void => {
    const { session, failAt } = this.#options;
    if (this.#got > this.#gotBefore) {
      // Messages are on their way still.
      this.#gotBefore = this.#got;
      this.#cancel = session.timer.setTimer(UNANSWERED_MS + QUIET_MS, this.#quiet);
      return;
    }
    this.#isQuiet = true;
    this.#line.retire();
    this.#cancel = session.timer.setTimer(Math.max(1, failAt - this.#core.now()), () => {
      this.#isLate = true;
      this.#line.giveUp();
    });
  };
}

function nothing(): void {}
