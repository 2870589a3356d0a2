/**
 * What one queue's loop is made of.
 *
 * @module
 */

import type { JobContext } from "./active_job.ts";
import type { BrokerQueue } from "./broker.ts";
import type { BrokerRefusedError } from "./errors.ts";
import type { Events } from "./events.ts";
import type { Learned } from "./learned.ts";
import type { LeaseKeeper } from "./lease_keeper.ts";
import type { Platform } from "./platform.ts";
import type { RunLimiter } from "./run_limiter.ts";
import type { SoloGate } from "./solo.ts";
import type { Turns } from "./turns.ts";
import type { WorkerQueue } from "./worker.ts";

export interface QueueLoopDeps {
  readonly platform: Platform;
  readonly brokerName: string;
  readonly queue: BrokerQueue;
  /** Whether one request settles, renews and claims. */
  readonly exchanges: boolean;
  /** Whether the engine holds a claim open until something comes. */
  readonly waits: boolean;
  readonly watches: boolean;
  readonly worker: WorkerQueue;
  readonly keeper: LeaseKeeper;
  readonly gate: SoloGate;
  readonly turns: Turns;
  readonly events: Events;
  readonly context: JobContext;
  readonly limiter?: RunLimiter | undefined;
  /** What an earlier run learned of the queue. */
  readonly learned?: Learned | undefined;
  /** Something changed that somebody may be waiting for. */
  readonly changed: () => void;
  /** The broker may lose jobs: this loop has ended. */
  readonly refused: (error: BrokerRefusedError) => void;
}
