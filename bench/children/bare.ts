/**
 * A broker without the loop: one exchange after the other, each acks the last batch and claims the next. What is left of a worker's
 * cost when this is taken off is the loop's.
 *
 * @module
 */
import { bunPlatform } from "../../runtimes/bun/mod.ts";
import type { BrokerQueue, Delivery } from "../../src/mod.ts";
import { type BrokerSpec, fill, openBroker, openQueue } from "../support/brokers.ts";
import { params, tell } from "../support/contender.ts";

export interface BareParams {
  readonly broker: BrokerSpec;
  readonly jobs: number;
  readonly warmUp: number;
  readonly batch: number;
}

const { broker: spec, jobs, warmUp, batch } = params<BareParams>();

async function run(queue: BrokerQueue): Promise<number> {
  let held: readonly Delivery[] = [];
  const from = performance.now();
  do {
    const reply = await queue.exchange?.({
      settle: held.map((delivery) => ({ delivery, verdict: { kind: "ack" } as const })),
      renew: [],
      claim: { leaseId: crypto.randomUUID(), max: batch, waitMs: 0 },
    });
    held = reply?.claimed?.deliveries ?? [];
  } while (held.length > 0);
  return performance.now() - from;
}

const broker = await openBroker(spec, bunPlatform());
const queue = await openQueue(broker, `bare-${crypto.randomUUID()}`);
await fill(queue, warmUp);
await run(queue);
await fill(queue, jobs);
Bun.gc(true);
tell({ ms: await run(queue) });
