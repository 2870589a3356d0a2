/**
 * Looks at a run's queues past all faults: what is left, and what is dead.
 *
 * @module
 */
import { type Broker, type BrokerQueue, type QueueDefinition, resolveOptions } from "../../src/mod.ts";
import { LEASE_MS, poison, work } from "./settings.ts";
import type { DeadLetter } from "./verdict.ts";

export interface Left {
  /** Jobs that are to run: ready or delayed. */
  readonly open: number;
  readonly held: number;
}

export interface Eye {
  /** What the queues have left; rejects while they cannot be asked. */
  left(): Promise<Left>;
  /** What the queues have left, in words, for whoever looks for the cause. */
  tell(): Promise<string[]>;
  deadLetters(): Promise<{ readonly work: readonly DeadLetter[]; readonly poison: readonly DeadLetter[] }>;
  close(): Promise<void>;
}

const MOST_DEAD = 10_000;
const REQUEST_TIMEOUT_MS = 5_000;

/** Looks by a broker of its own, which it closes at the end. */
export async function brokerEye(broker: Broker): Promise<Eye> {
  const queues = [await opened(broker, work), await opened(broker, poison)] as const;
  return {
    async left() {
      let [open, held] = [0, 0];
      for (const sizes of await Promise.all(queues.map((one) => one.sizes?.()))) {
        open += sizes === undefined ? 1 : sizes.ready + sizes.delayed;
        held += sizes?.held ?? 0;
      }
      return { open, held };
    },
    async tell() {
      return (await Promise.all(queues.map(leftOf))).flat();
    },
    async deadLetters() {
      return { work: await deadOf(queues[0]), poison: await deadOf(queues[1]) };
    },
    close: () => broker.close(),
  };
}

async function opened(broker: Broker, definition: QueueDefinition<{ pad: string }>): Promise<BrokerQueue> {
  // Of the workers' lease: where it belongs to the queue, whoever opens it first decides.
  const { settings } = resolveOptions(definition.handle(() => {}, { leaseMs: LEASE_MS }));
  const asked = broker.queue(definition.name, { ...settings, requestTimeoutMs: REQUEST_TIMEOUT_MS });
  await asked.open();
  return asked;
}

async function leftOf(asked: BrokerQueue): Promise<string[]> {
  const lines = [`${asked.name} has left ${JSON.stringify(await asked.sizes?.())}`];
  for (const state of ["ready", "delayed", "held"] as const) {
    for (const { id, attempts } of (await asked.peek?.(state, 10, false)) ?? []) {
      lines.push(`${asked.name} ${state}: ${id}, ${attempts} attempts`);
    }
  }
  return lines;
}

async function deadOf(asked: BrokerQueue): Promise<DeadLetter[]> {
  const dead = (await asked.peek?.("dead", MOST_DEAD, false)) ?? [];
  return dead.map(({ id, error = "no reason" }) => ({ id, error }));
}
