/**
 * One worker of a fleet: a process with a broker connection of its own. Tells which jobs it ran.
 *
 * @module
 */
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import { defineWorker, queue, startWorker } from "../../src/mod.ts";
import { type BrokerSpec, openBroker } from "../support/brokers.ts";
import { hear, params, tell } from "../support/contender.ts";

export interface FleetParams {
  readonly broker: BrokerSpec;
  readonly queue: string;
}

export interface FleetResult {
  /** The numbers of the jobs it ran, in order. */
  readonly ran: readonly number[];
  /** When the first and the last of them ran, Unix milliseconds. */
  readonly firstAt: number;
  readonly lastAt: number;
}

const { broker: spec, queue: name } = params<FleetParams>();
const platform = bunPlatform();
const broker = await openBroker(spec, platform);
const ran: number[] = [];
let firstAt = Number.POSITIVE_INFINITY;
let lastAt = 0;
const worker = await startWorker(
  defineWorker({
    queues: [
      queue<{ n: number }>(name).handle(async (job) => {
        // The warm-up's have no number.
        if (job.body.n < 0) return;
        lastAt = performance.timeOrigin + performance.now();
        if (ran.length === 0) firstAt = lastAt;
        ran.push(job.body.n);
      }),
    ],
  }),
  { broker, platform },
);
tell("ready");
await hear();
await worker.stop();
await broker.close();
tell({ ran, firstAt: ran.length === 0 ? lastAt : firstAt, lastAt } satisfies FleetResult);
