/**
 * One pull on one lane, with an end that does not depend on the server's.
 *
 * nats-server 2.9 ends a pull without a word when its time runs out in the middle of its messages, and answers nothing at all when the consumer is gone.
 *
 * @module
 */
import { BrokerError } from "../../src/errors.ts";
import { onAbort } from "./aborting.ts";
import type { Core } from "./core.ts";
import { type Raw, receive } from "./deliveries.ts";
import type { Lane } from "./lane.ts";
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
export async function pullOnce(core: Core, options: PullOptions): Promise<number> {
  const { session, lane, batch, failAt, signal, take, hasNews } = options;
  const line = core.line(session, lane);
  const sentAt = core.now();
  const until = sentAt + options.waitMs;
  // News may have come since the wait was decided on.
  const waits = options.waitMs >= LEAST_WAIT_MS && !hasNews(until);
  const waitMs = waits ? options.waitMs : 0;
  let got = 0;
  let isOver = false;
  let isQuiet = false;
  let isLate = false;
  let isAgain = false;
  const stop = () => line.retire();
  const unlisten = waits ? core.listen(() => hasNews(until) && stop()) : undefined;
  const unabort = waits ? onAbort(signal, stop) : undefined;
  let gotBefore = 0;
  const quiet = () => {
    if (got > gotBefore) {
      // Messages are on their way still.
      gotBefore = got;
      cancel = session.timer.setTimer(UNANSWERED_MS + QUIET_MS, quiet);
      return;
    }
    isQuiet = true;
    line.retire();
    cancel = session.timer.setTimer(Math.max(1, failAt - core.now()), () => {
      isLate = true;
      line.giveUp();
    });
  };
  const unanswered = () => {
    const leftMs = failAt - core.now();
    // Once: a server that only stands still would hand out a batch for each.
    if (leftMs > 1) line.askAgain();
    cancel = session.timer.setTimer(Math.min(QUIET_MS, Math.max(1, leftMs)), quiet);
  };
  const firstMs = Math.min(waitMs + UNANSWERED_MS, Math.max(1, failAt - sentAt));
  let cancel = session.timer.setTimer(firstMs, unanswered);
  try {
    const end = await line.pull(batch, waitMs, (message) => {
      got += 1;
      const raw = receive(lane, message, sentAt);
      if (raw === undefined) return;
      if (raw.info.delivered > 1) isAgain = true;
      take(raw, isOver);
    });
    if (isAgain) lane.handedOutAgain(core.now());
    if (isQuiet && got === 0) {
      // The server answered everything else: the consumer may be gone, and is looked at again.
      lane.seenOver = undefined;
      if (isLate) {
        throw new BrokerError("nats", "claim", `Cannot claim: ${session.origin} did not answer in time`);
      }
    }
    if (end !== "full") lane.ranShort(core.now(), Math.max(250, core.leaseMs * PROBE_SHARE));
    return got;
  } catch (error) {
    lane.seenOver = undefined;
    throw error;
  } finally {
    isOver = true;
    cancel();
    unlisten?.();
    unabort?.();
    core.putBack(line);
  }
}
