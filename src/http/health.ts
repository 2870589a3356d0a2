/**
 * Whether the worker works and the broker can be reached.
 *
 * @module
 */
import type { BrokerError } from "../errors.ts";
import { BrokerRefusedError } from "../errors.ts";
import type { Platform } from "../platform.ts";
import type { RunningWorker } from "../start.ts";
import type { QueueRegistry } from "./registry.ts";

/** `ok`, or the first thing that is wrong. */
export type HealthStatus =
  | "ok"
  | "worker-refused"
  | "worker-stopped"
  | "broker-refused"
  | "broker-unreachable";

/** How long an answer of the broker counts, in milliseconds: whoever asks without a token must not be able to keep the broker busy. */
const PROBE_COUNTS_MS = 2_000;

/** Watches one worker and one broker. */
export class Health {
  readonly #registry: QueueRegistry;
  readonly #platform: Platform;
  #worker: "none" | "running" | "refused" | "stopped";
  #probe: { readonly at: number; readonly answer: Promise<HealthStatus> } | undefined;

  constructor(registry: QueueRegistry, platform: Platform, worker: RunningWorker | undefined) {
    this.#registry = registry;
    this.#platform = platform;
    this.#worker = worker === undefined ? "none" : "running";
    worker?.done.then(
      () => {
        this.#worker = "stopped";
      },
      () => {
        this.#worker = "refused";
      },
    );
    worker?.on((event) => {
      if (event.type === "stopping" && this.#worker === "running") this.#worker = "stopped";
    });
  }

  /** Looks. Never rejects. */
  async status(): Promise<HealthStatus> {
    if (this.#worker === "refused") return "worker-refused";
    if (this.#worker === "stopped") return "worker-stopped";
    const now = this.#platform.now();
    if (this.#probe === undefined || now - this.#probe.at >= PROBE_COUNTS_MS) {
      this.#probe = { at: now, answer: this.#ask() };
    }
    return await this.#probe.answer;
  }

  async #ask(): Promise<HealthStatus> {
    const name = this.#registry.names[0];
    if (name === undefined) return "ok";
    try {
      const queue = await this.#registry.open(name);
      await queue.sizes?.();
      return "ok";
    } catch (error) {
      return (error as BrokerError) instanceof BrokerRefusedError ? "broker-refused" : "broker-unreachable";
    }
  }
}
