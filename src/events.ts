/**
 * What a worker tells of itself while it runs. Events carry ids and numbers, never bodies.
 *
 * @module
 */
import { ignoreRejection } from "./promises.ts";

export type EddyEvent =
  /** A claim was answered. */
  | {
      readonly type: "claimed";
      readonly queue: string;
      readonly leaseId: string;
      readonly asked: number;
      readonly got: number;
      readonly tookMs: number;
    }
  | {
      readonly type: "started";
      readonly queue: string;
      readonly jobId: string;
      readonly leaseId: string;
      readonly attempt: number;
    }
  /** The handler is done and the verdict known; it is not settled yet. */
  | {
      readonly type: "finished";
      readonly queue: string;
      readonly jobId: string;
      readonly leaseId: string;
      readonly attempt: number;
      readonly verdict: "ack" | "retry" | "dead" | "release";
      readonly ranMs: number;
      /** Of a retry or a dead letter: why. None where its handler asked for a retry and gave no reason. */
      readonly error?: string;
      /** True for a retry that its handler asked for by `job.retry`: nothing failed. */
      readonly asked?: boolean;
    }
  /** The broker took the verdict. */
  | {
      readonly type: "settled";
      readonly queue: string;
      readonly jobId: string;
      readonly leaseId: string;
      readonly verdict: "ack" | "retry" | "dead" | "release";
    }
  /** The delivery's lease is over before it was settled; the job will run again, here or elsewhere. */
  | {
      readonly type: "lost";
      readonly queue: string;
      readonly jobId: string;
      readonly leaseId: string;
      readonly started: boolean;
    }
  | { readonly type: "renewed"; readonly queue: string; readonly leaseIds: readonly string[] }
  /** A request failed; it is tried again after `retryInMs`, or not at all when that is undefined. */
  | {
      readonly type: "brokerError";
      readonly queue: string;
      readonly verb: string;
      readonly error: Error;
      readonly retryInMs: number | undefined;
    }
  /** The broker may lose jobs; this queue is not consumed any more. */
  | { readonly type: "refused"; readonly queue: string; readonly error: Error }
  /** Nothing was there; the next look is after `nextLookMs` or when woken. */
  | { readonly type: "idle"; readonly queue: string; readonly nextLookMs: number }
  | { readonly type: "woken"; readonly queue: string }
  /** A suspect on its last attempt is about to run, with nothing beside it. */
  | { readonly type: "lastChance"; readonly queue: string; readonly jobId: string }
  /** A handler ignored its aborted signal and was left behind; its attempt is charged. */
  | { readonly type: "abandoned"; readonly queue: string; readonly jobId: string }
  /** A stop has begun, of a drain by its signal too: nothing is claimed or started any more; handlers that run get `graceMs` before their signal is aborted. */
  | {
      readonly type: "stopping";
      readonly reason: string;
      /** How many handlers run. */
      readonly running: number;
      readonly graceMs: number;
    }
  | { readonly type: "stopped" };

export type EventListener = (event: EddyEvent) => void;

/**
 * Hands events to listeners. Making an event costs something, so whoever would emit many asks {@linkcode Events.heard} first.
 */
export class Events {
  #listeners: EventListener[] = [];

  /** Whether anybody listens. */
  get heard(): boolean {
    return this.#listeners.length > 0;
  }

  /** Adds a listener; answers a function that takes it away. */
  on(listener: EventListener): () => void {
    this.#listeners = [...this.#listeners, listener];
    return () => {
      this.#listeners = this.#listeners.filter((other) => other !== listener);
    };
  }

  emit(event: EddyEvent): void {
    for (const listener of this.#listeners) {
      try {
        ignoreRejection(listener(event));
      } catch {
        // A listener's fault is its own, also where it comes later: it must never cost a job.
      }
    }
  }
}
