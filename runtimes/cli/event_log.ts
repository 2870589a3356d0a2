/**
 * From a worker's events to log lines: what went wrong at once, what went well as sums.
 *
 * @module
 */
import { BrokerRefusedError } from "../../src/errors.ts";
import type { EddyEvent } from "../../src/events.ts";
import type { LogSink } from "../../src/job.ts";
import type { Platform } from "../../src/platform.ts";
import { Sums } from "./sums.ts";

/** How often a broker's errors are told at the most, in milliseconds. */
const EVERY_MS = 5_000;

/** What was told of a queue's broker failing. Kept after it recovers, so that one which flaps does not fill the log. */
interface Trouble {
  toldAt: number;
  /** Whether the last thing told is that it fails. */
  failing: boolean;
  untold: number;
}

const FIELD = { ack: "acked", retry: "retried", dead: "dead", release: "released" } as const;

/** Listens to a worker and logs. */
export class EventLog {
  readonly #platform: Pick<Platform, "now" | "setTimer">;
  readonly #log: LogSink;
  readonly #sums: Sums;
  readonly #trouble = new Map<string, Trouble>();
  #toldRefusal = false;

  constructor(platform: Pick<Platform, "now" | "setTimer">, log: LogSink) {
    this.#platform = platform;
    this.#log = log;
    this.#sums = new Sums(platform, log);
  }

  /** What is left behind where the process is ended at once. */
  heldBehind(): string {
    const { held } = this.#sums;
    if (held === 0) return "Ended at once: no job is known to be held";
    const [jobs, their] =
      held === 1
        ? ["1 job stays", "its lease ends, and then runs"]
        : [`${held} jobs stay`, "their lease ends, and then run"];
    return `Ended at once: ${jobs} held until ${their} again`;
  }

  /** Whether it was told that the broker is refused. */
  get toldRefusal(): boolean {
    return this.#toldRefusal;
  }

  readonly listener = (event: EddyEvent): void => {
    switch (event.type) {
      case "claimed":
        this.#answered(event.queue);
        this.#sums.claimed(event.queue, event.asked, event.got);
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
        this.#sums.settled(event.queue, FIELD[event.verdict]);
        return;
      case "lost":
        this.#sums.lost(event.queue);
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
        this.#refused(event);
        return;
      case "idle":
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
          // Why it is refused was told by then.
          reason: this.#toldRefusal ? "the broker is refused" : event.reason,
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
    this.#sums.close();
  }

  #finished(event: EddyEvent & { type: "finished" }): void {
    const fields = {
      queue: event.queue,
      job: event.jobId,
      attempt: event.attempt,
      ms: Math.round(event.ranMs),
    };
    if (event.verdict === "retry" && event.asked === true) {
      this.#log("info", "The handler asked for another try", { ...fields, reason: event.error });
    } else if (event.verdict === "retry") {
      this.#log("warn", "The job failed and will be tried again", { ...fields, error: event.error });
    } else if (event.verdict === "dead") {
      this.#log("error", "The job is now a dead letter", { ...fields, error: event.error });
    } else {
      this.#log("debug", event.verdict === "ack" ? "done" : "given back", fields);
    }
  }

  #refused({ queue, error }: { readonly queue: string; readonly error: Error }): void {
    // The first ends the worker. Each queue, and whatever verb comes next, meets the same.
    const level = this.#toldRefusal ? "debug" : "error";
    this.#toldRefusal = true;
    this.#log(level, "The broker is refused", { queue, error: error.message });
  }

  #failed(event: EddyEvent & { type: "brokerError" }): void {
    if (event.error instanceof BrokerRefusedError) return this.#refused(event);
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
