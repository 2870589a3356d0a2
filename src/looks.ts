/**
 * When to look at a queue that had nothing: woken by the broker where it can, else by gaps that grow; and at the moment when something delayed is due.
 *
 * @module
 */

import { brokerBackoffMs } from "./backoff.ts";
import type { BrokerQueue, Watch } from "./broker.ts";
import type { CancelTimer, Platform } from "./platform.ts";
import { asError, withDeadline } from "./requests.ts";

export interface LooksOptions {
  readonly platform: Platform;
  readonly queue: BrokerQueue;
  readonly watches: boolean;
  /** How long beginning a watch may take, in milliseconds. */
  readonly requestTimeoutMs: number;
  readonly brokerName: string;
  readonly pollMinMs: number;
  readonly pollMaxMs: number;
  readonly safetyPollMs: number;
  /** It is time to look: `woken` by the broker, or by the clock. */
  readonly look: (woken: boolean) => void;
  /** The watch failed; it is tried again after `retryInMs`. */
  readonly watchFailed: (error: Error, retryInMs: number) => void;
}

/** A due time is met this much later, in milliseconds, so that the broker's clock has surely passed it. */
const DUE_MARGIN_MS = 2;

/**
 * The gap before the next look. Pure.
 *
 * @param emptyLooks how many in a row found nothing, from 1 on.
 * @param random in [0, 1): a fleet must not look in step.
 */
export function nextLookMs(
  emptyLooks: number,
  random: number,
  limits: { readonly pollMinMs: number; readonly pollMaxMs: number; readonly safetyPollMs: number },
  watching: boolean,
  nextDueMs: number | undefined,
): number {
  const gap = watching
    ? limits.safetyPollMs
    : Math.min(limits.pollMaxMs, limits.pollMinMs * 2 ** Math.min(emptyLooks - 1, 30));
  const jittered = gap * (0.75 + random * 0.25);
  return nextDueMs === undefined ? jittered : Math.min(jittered, Math.max(0, nextDueMs) + DUE_MARGIN_MS);
}

export class Looks {
  readonly #options: LooksOptions;
  #emptyLooks = 0;
  #cancelLook: CancelTimer | undefined;
  #lookAt = Number.POSITIVE_INFINITY;
  /** When something is known to become claimable, of which the engine may not tell. */
  #expectedAt = Number.POSITIVE_INFINITY;
  #watch: Watch | undefined;
  #cancelWatch: CancelTimer | undefined;
  #watchFailures = 0;
  #closed = false;

  constructor(options: LooksOptions) {
    this.#options = options;
  }

  get watching(): boolean {
    return this.#watch !== undefined;
  }

  /** Begins to watch, where the broker can. A watch that fails is begun again and again, with jitter; meanwhile the gaps do. */
  start(): Promise<void> {
    if (!this.#options.watches || this.#closed) return Promise.resolve();
    return this.#beginWatch();
  }

  /** Something came: the gaps start small again. */
  found(): void {
    this.#emptyLooks = 0;
  }

  /** Nothing, or not enough, came; answers in how many milliseconds the next look is. */
  missed(nextDueMs: number | undefined): number {
    this.#emptyLooks += 1;
    const { platform } = this.#options;
    const dueMs = Math.min(nextDueMs ?? Number.POSITIVE_INFINITY, this.#expectedInMs());
    const ms = nextLookMs(this.#emptyLooks, platform.random(), this.#options, this.watching, dueMs);
    this.#cancel();
    this.#arm(ms);
    return ms;
  }

  /** Something is known to become claimable in `ms`: look then, if not sooner. */
  expect(ms: number): void {
    this.#expectedAt = this.#options.platform.now() + Math.min(ms, this.#expectedInMs());
    this.#arm(ms + DUE_MARGIN_MS);
  }

  /** No look is planned any more. */
  calm(): void {
    this.#cancel();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    this.#cancelWatch?.();
    const watch = this.#watch;
    this.#watch = undefined;
    await watch?.close();
  }

  /** In how many milliseconds something is expected that no look can have found yet. */
  #expectedInMs(): number {
    const ms = this.#expectedAt - this.#options.platform.now();
    return ms > 0 ? ms : Number.POSITIVE_INFINITY;
  }

  #arm(ms: number): void {
    if (this.#closed) return;
    const { platform } = this.#options;
    const at = platform.now() + ms;
    if (at >= this.#lookAt) return;
    this.#cancelLook?.();
    this.#lookAt = at;
    this.#cancelLook = platform.setTimer(ms, () => {
      this.#cancelLook = undefined;
      this.#lookAt = Number.POSITIVE_INFINITY;
      this.#options.look(false);
    });
  }

  #cancel(): void {
    this.#cancelLook?.();
    this.#cancelLook = undefined;
    this.#lookAt = Number.POSITIVE_INFINITY;
  }

  async #beginWatch(): Promise<void> {
    const { platform, queue, requestTimeoutMs, brokerName, look } = this.#options;
    let over = false;
    const onWake = () => {
      if (over || this.#closed) return;
      this.#emptyLooks = 0;
      look(true);
    };
    const onEnd = (error: Error) => {
      if (over) return;
      over = true;
      this.#watch = undefined;
      this.#watchAgain(error);
      // What came while nobody watched was not told: look once.
      if (!this.#closed) look(false);
    };
    try {
      const beginning = queue.watch?.(onWake, onEnd);
      if (beginning === undefined) return;
      // One that begins too late is ended again.
      beginning.then(
        (watch) => (over || this.#closed ? closeQuietly(watch) : undefined),
        () => {},
      );
      const watch = await withDeadline(platform, requestTimeoutMs, brokerName, "watch", beginning);
      if (over || this.#closed) return;
      this.#watch = watch;
      this.#watchFailures = 0;
      // News between the last look and now is missed otherwise.
      look(false);
    } catch (error) {
      if (over) return;
      over = true;
      this.#watchAgain(asError(error));
    }
  }

  #watchAgain(error: Error): void {
    if (this.#closed) return;
    this.#watchFailures += 1;
    const { platform } = this.#options;
    const ms = 100 + brokerBackoffMs(this.#watchFailures, platform.random()) * 3;
    this.#options.watchFailed(error, ms);
    this.#cancelWatch = platform.setTimer(ms, () => {
      // #beginWatch never rejects.
      void this.#beginWatch();
    });
  }
}

async function closeQuietly(watch: Watch): Promise<void> {
  try {
    await watch.close();
  } catch {
    // It was of no use any more.
  }
}
