/**
 * From a worker's events to log lines: what went wrong at once, what went well as sums.
 *
 * @module
 */
import type { EddyEvent } from "../../src/events.ts";
import type { LogSink } from "../../src/job.ts";
import type { CancelTimer, Platform } from "../../src/platform.ts";

/** How often sums are told while jobs run, and broker errors at the most, in milliseconds. */
const EVERY_MS = 5_000;

interface Sums {
  acked: number;
  retried: number;
  dead: number;
  released: number;
}

/** What was told of a queue's broker failing. Kept after it recovers, so that one which flaps does not fill the log. */
interface Trouble {
  toldAt: number;
  /** Whether the last thing told is that it fails. */
  failing: boolean;
  untold: number;
}

const NONE: Readonly<Sums> = Object.freeze({ acked: 0, retried: 0, dead: 0, released: 0 });
const FIELD = { ack: "acked", retry: "retried", dead: "dead", release: "released" } as const;

/** Listens to a worker and logs. */
export class EventLog {
  readonly #platform: Pick<Platform, "now" | "setTimer">;
  readonly #log: LogSink;
  readonly #sums = new Map<string, Sums>();
  readonly #trouble = new Map<string, Trouble>();
  #timer: CancelTimer | undefined;

  constructor(platform: Pick<Platform, "now" | "setTimer">, log: LogSink) {
    this.#platform = platform;
    this.#log = log;
  }

  readonly listener = (event: EddyEvent): void => {
    switch (event.type) {
      case "claimed":
        this.#answered(event.queue);
        this.#log("debug", "claimed", {
          queue: event.queue,
          asked: event.asked,
          got: event.got,
          lease: event.leaseId,
        });
        return;
      case "started":
        this.#log("debug", "started", { queue: event.queue, job: event.jobId, attempt: event.attempt });
        return;
      case "finished":
        this.#finished(event);
        return;
      case "settled":
        this.#answered(event.queue);
        this.#count(event.queue, FIELD[event.verdict]);
        return;
      case "lost":
        this.#log("warn", "The lease is over; the job will run again", {
          queue: event.queue,
          job: event.jobId,
          started: event.started,
        });
        return;
      case "renewed":
        this.#answered(event.queue);
        this.#log("debug", "renewed", { queue: event.queue, leases: event.leaseIds.length });
        return;
      case "brokerError":
        this.#failed(event);
        return;
      case "refused":
        this.#log("error", "The broker is refused", { queue: event.queue, error: event.error.message });
        return;
      case "idle":
        this.#tellSums(event.queue, "The queue is empty");
        this.#log("debug", "idle", { queue: event.queue, nextLookMs: event.nextLookMs });
        return;
      case "woken":
        this.#log("debug", "woken", { queue: event.queue });
        return;
      case "lastChance":
        this.#log("warn", "A job whose earlier holder vanished gets its last attempt, by itself", {
          queue: event.queue,
          job: event.jobId,
        });
        return;
      case "abandoned":
        this.#log("warn", "A handler ignored its signal and was left behind", {
          queue: event.queue,
          job: event.jobId,
        });
        return;
      case "stopping":
        this.#log("info", "Stopping: running jobs may finish, nothing starts", {
          running: event.running,
          graceMs: Math.round(event.graceMs),
          reason: event.reason,
        });
        return;
      case "stopped":
        this.close();
        this.#log("info", "Stopped", {});
        return;
    }
  };

  /** Tells what was not told yet. May be called twice. */
  close(): void {
    this.#timer?.();
    this.#timer = undefined;
    for (const queue of this.#sums.keys()) this.#tellSums(queue, "Done");
  }

  #finished(event: EddyEvent & { type: "finished" }): void {
    const fields = {
      queue: event.queue,
      job: event.jobId,
      attempt: event.attempt,
      ms: Math.round(event.ranMs),
    };
    if (event.verdict === "retry") {
      this.#log("warn", "The job failed and will be tried again", { ...fields, error: event.error });
    } else if (event.verdict === "dead") {
      this.#log("error", "The job is now a dead letter", { ...fields, error: event.error });
    } else {
      this.#log("debug", event.verdict === "ack" ? "done" : "given back", fields);
    }
  }

  #count(queue: string, field: keyof Sums): void {
    let sums = this.#sums.get(queue);
    if (sums === undefined) {
      sums = { ...NONE };
      this.#sums.set(queue, sums);
    }
    sums[field] += 1;
    this.#timer ??= this.#platform.setTimer(EVERY_MS, () => {
      this.#timer = undefined;
      for (const name of this.#sums.keys()) this.#tellSums(name, "Working");
    });
  }

  #tellSums(queue: string, message: string): void {
    const sums = this.#sums.get(queue);
    if (sums === undefined) return;
    this.#sums.delete(queue);
    const told = Object.entries(sums).filter(([name, count]) => count > 0 || name === "acked");
    this.#log("info", message, { queue, ...Object.fromEntries(told) });
  }

  #failed(event: EddyEvent & { type: "brokerError" }): void {
    const now = this.#platform.now();
    const before = this.#trouble.get(event.queue);
    if (before !== undefined && now - before.toldAt < EVERY_MS) {
      before.untold += 1;
      return;
    }
    this.#trouble.set(event.queue, { toldAt: now, failing: true, untold: 0 });
    this.#log("warn", "The broker failed; trying again", {
      queue: event.queue,
      verb: event.verb,
      error: event.error.message,
      ...(event.retryInMs === undefined ? {} : { retryInMs: Math.round(event.retryInMs) }),
      ...(before === undefined || before.untold === 0 ? {} : { failuresUntold: before.untold }),
    });
  }

  #answered(queue: string): void {
    const trouble = this.#trouble.get(queue);
    if (trouble === undefined || !trouble.failing) return;
    trouble.failing = false;
    this.#log("info", "The broker answers again", { queue });
  }
}
