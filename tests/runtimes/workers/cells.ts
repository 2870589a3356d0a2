/**
 * Where the conformance cases run inside workerd: what each cell is called, lacks, and how many cases it must run. Read both in Bun, which registers the cases, and in
 * workerd, which runs them.
 *
 * @module
 */
import type { CaseNeed } from "../../support/conformance.ts";

export interface Cell {
  /** The adapter's name, as in `Broker.name`. */
  readonly name: string;
  readonly lacks: Readonly<Partial<Record<CaseNeed, string>>>;
  readonly shortMs: number;
}

const REAL_CLOCK = "a real server's clock cannot be moved";

const natsLacks = {
  exchange: "JetStream has no request that settles and hands out at once",
  wake: "its claims wait",
  memo: "a memo travels with exchanges",
  fenced: "JetStream knows deliveries, not leases, and takes any ack of them",
  atomic: "JetStream takes messages in one by one",
  simulatedTime: REAL_CLOCK,
} as const;

export const CELLS = {
  memory: { name: "memory", lacks: { waits: "its claims answer at once" }, shortMs: 1000 },
  /** The adapter inside of an object, on the object's storage. */
  "object's sqlite": { name: "sqlite", lacks: { waits: "its claims answer at once" }, shortMs: 1000 },
  /** The same from outside, over the object's stub. */
  "durable object": {
    name: "durable-object",
    lacks: {
      waits: "an object answers at once",
      wake: "an object runs its handlers itself, and a drain from outside ends by itself",
      simulatedTime: "the object goes by its own clock",
    },
    shortMs: 1000,
  },
  redis: {
    name: "redis",
    lacks: { waits: "a request over HTTP is answered at once", simulatedTime: REAL_CLOCK },
    shortMs: 1000,
  },
  nats: { name: "nats", lacks: natsLacks, shortMs: 1000 },
} as const satisfies Record<string, Cell>;

/** The Platform port's cases. */
export const PLATFORM_CELL = {
  name: "workers",
  lacks: { stop: "an isolate is ended without a word" },
} as const;

export type CellName = keyof typeof CELLS;

/** What became of a case. */
export interface CaseResult {
  readonly name: string;
  /** `null` when it held. */
  readonly error: string | null;
}
