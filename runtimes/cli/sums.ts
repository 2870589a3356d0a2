/**
 * What goes well, told as sums: a line a job would bury what goes wrong.
 *
 * @module
 */
import type { LogSink } from "../../src/job.ts";
import type { CancelTimer, Platform } from "../../src/platform.ts";

/** How often sums are told while jobs run, in milliseconds. */
const WORKING_MS = 5_000;

/**
 * How long after its last line a queue that has run empty tells nothing, in milliseconds. One that gets a job now and then, or has one tried again after its backoff, runs
 * empty after each of them, and would have a line for each.
 */
const QUIET_MS = 30_000;

/** What becomes of a delivery, as it is told. */
export type End = "acked" | "retried" | "dead" | "released";

const NONE: Readonly<Record<End, number>> = Object.freeze({ acked: 0, retried: 0, dead: 0, released: 0 });

interface QueueSums {
  sums: Record<End, number> | undefined;
  /** Deliveries claimed, and neither settled nor lost. */
  held: number;
  /** Whether nothing more is ready, as far as is known: the last claim brought less than it asked for. */
  short: boolean;
  /** Until when an empty queue tells nothing. */
  quietUntil: number;
}

export class Sums {
  readonly #platform: Pick<Platform, "now" | "setTimer">;
  readonly #log: LogSink;
  readonly #queues = new Map<string, QueueSums>();
  #timer: CancelTimer | undefined;

  constructor(platform: Pick<Platform, "now" | "setTimer">, log: LogSink) {
    this.#platform = platform;
    this.#log = log;
  }

  /** How many deliveries are held, over all queues. */
  get held(): number {
    let held = 0;
    for (const queue of this.#queues.values()) held += queue.held;
    return held;
  }

  claimed(name: string, asked: number, got: number): void {
    const queue = this.#queue(name);
    queue.held += got;
    queue.short = got < asked;
    this.#tellEmpty(name, queue);
  }

  /** The broker took a verdict. */
  settled(name: string, end: End): void {
    const queue = this.#queue(name);
    queue.held -= 1;
    queue.sums ??= { ...NONE };
    queue.sums[end] += 1;
    this.#arm();
    this.#tellEmpty(name, queue);
  }

  /** A delivery's lease is over. */
  lost(name: string): void {
    this.#queue(name).held -= 1;
  }

  /** Tells what was not told yet. May be called twice. */
  close(): void {
    this.#timer?.();
    this.#timer = undefined;
    for (const [name, queue] of this.#queues) this.#tell(name, queue, "Done");
  }

  #queue(name: string): QueueSums {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      queue = { sums: undefined, held: 0, short: false, quietUntil: Number.NEGATIVE_INFINITY };
      this.#queues.set(name, queue);
    }
    return queue;
  }

  #arm(): void {
    this.#timer ??= this.#platform.setTimer(WORKING_MS, () => {
      this.#timer = undefined;
      for (const [name, queue] of this.#queues) {
        if (!isEmpty(queue)) this.#tell(name, queue, "Working");
        else this.#tellEmpty(name, queue);
        if (queue.sums !== undefined) this.#arm();
      }
    });
  }

  /** Tells of a queue that is empty, once it has been quiet long enough: at once after a line that said it works. */
  #tellEmpty(name: string, queue: QueueSums): void {
    if (queue.sums === undefined || !isEmpty(queue)) return;
    const now = this.#platform.now();
    if (now < queue.quietUntil) return;
    this.#tell(name, queue, "No job is ready any more");
    queue.quietUntil = now + QUIET_MS;
  }

  #tell(name: string, queue: QueueSums, message: string): void {
    const { sums } = queue;
    if (sums === undefined) return;
    queue.sums = undefined;
    queue.quietUntil = Number.NEGATIVE_INFINITY;
    const told = Object.entries(sums).filter(([end, count]) => count > 0 || end === "acked");
    this.#log("info", message, { queue: name, ...Object.fromEntries(told) });
  }
}

/** Whether a queue has run empty: not with the next look, which after a short claim may be a lease later, but with the last verdict. */
function isEmpty({ held, short }: QueueSums): boolean {
  return short && held === 0;
}
