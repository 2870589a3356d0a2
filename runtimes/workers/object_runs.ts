/**
 * When a queue's object works, and what wakes it: the alarm's rules, apart from the object's class.
 *
 * A run is a drain of the queues that are due. It is begun by whatever made work due (an enqueue, the alarm), and there is never more than
 * one. The alarm stands behind it the whole time: set for now when a call begins a run, so that the run goes on under an event of its own; a little ahead while it runs, so
 * that an object which is ended in the middle is woken again however often that happens; and at the end for what is due next, if anything is.
 *
 * @module
 */
import type { DrainReport } from "../../src/drain.ts";
import { goesOn } from "./gaps.ts";
import type { ObjectAlarm } from "./object_alarm.ts";

export interface ObjectRunsOptions {
  readonly alarm: ObjectAlarm;
  /** Unix milliseconds. */
  readonly wallNow: () => number;
  /** In how many milliseconds each queue is due; queues with nothing in sight are left out. */
  readonly dueMs: () => ReadonlyMap<string, number>;
  /** Drains the named queues. */
  readonly drain: (queues: readonly string[]) => Promise<DrainReport>;
  /** Told of a drain that failed, and when it is tried again. */
  readonly failed: (error: unknown, retryInMs: number) => void;
}

/** How soon an object that was ended in the middle of a run is woken. While its alarm is being handled the next one waits, so this may be short. */
const BACKSTOP_MS = 1_000;
/** After a drain that failed: the first gap, and the longest. */
const RETRY_MS = { first: 1_000, most: 60_000 } as const;
/** After a run that found nothing to do although something was due. */
const PUZZLED_MS = 1_000;

export class ObjectRuns {
  readonly #options: ObjectRunsOptions;
  #running: Promise<void> | undefined;
  #failures = 0;

  constructor(options: ObjectRunsOptions) {
    this.#options = options;
  }

  /** Something may have become due. Begins a run when it is, or has the alarm do it in time. Does not wait. Never throws. */
  touched(): void {
    if (this.#running !== undefined) return;
    const { alarm, wallNow, dueMs, failed } = this.#options;
    // While runs fail, the alarm alone sets the pace.
    let soonest = this.#retryMs();
    try {
      soonest = Math.max(soonest, Math.min(...dueMs().values()));
    } catch (error) {
      soonest = RETRY_MS.first;
      failed(error, soonest);
    }
    if (soonest === Number.POSITIVE_INFINITY) return;
    if (soonest > 0) return alarm.setBy(wallNow() + soonest);
    alarm.set(wallNow());
    void this.#begin();
  }

  /** The alarm went off. Resolves when the work is done, or this event's share of it. Never rejects. */
  alarmed(): Promise<void> {
    const { alarm, wallNow } = this.#options;
    alarm.fired();
    alarm.set(wallNow() + BACKSTOP_MS);
    return this.#begin();
  }

  #begin(): Promise<void> {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #run(): Promise<void> {
    const { alarm, wallNow, failed } = this.#options;
    let inMs: number | undefined;
    try {
      inMs = await this.#work();
      this.#failures = 0;
    } catch (error) {
      this.#failures += 1;
      inMs = this.#retryMs();
      failed(error, inMs);
    }
    if (inMs === undefined) alarm.clear();
    else alarm.set(wallNow() + inMs);
  }

  /** Drains until nothing is due or the budget is used up; answers when to go on. */
  async #work(): Promise<number | undefined> {
    const { dueMs, drain } = this.#options;
    for (;;) {
      const due = dueMs();
      const now = [...due].filter(([, ms]) => ms === 0).map(([name]) => name);
      if (now.length === 0) return due.size === 0 ? undefined : Math.min(...due.values());
      const report = await drain(now);
      // The rest belongs to the next event, with a budget of its own.
      if (goesOn(report)) return 0;
      if (report.jobs + report.dead + report.released === 0) return PUZZLED_MS;
    }
  }

  #retryMs(): number {
    if (this.#failures === 0) return 0;
    return Math.min(RETRY_MS.most, RETRY_MS.first * 2 ** (this.#failures - 1));
  }
}
