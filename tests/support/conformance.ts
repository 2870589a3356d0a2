/**
 * The frame of the conformance suite: what a case is, what it is given, and what an adapter's harness provides. Nothing
 * here belongs to one runtime or test library, so the same cases run inside Bun, Deno and workerd.
 *
 * @module
 */

import type { Broker, BrokerQueue, Capability, QueueSettings } from "../../src/broker.ts";
import { that } from "./conformance_assert.ts";

/** What a case asks for beyond the three verbs. `simulatedTime`: passing minutes costs nothing. */
export type CaseNeed = Capability | "simulatedTime";

/** One thing that must hold of every broker which has what the case needs. */
export interface ConformanceCase {
  readonly name: string;
  readonly needs: readonly CaseNeed[];
  run(context: CaseContext): Promise<void>;
}

/** One queue seen by two connections to the same engine. */
export interface QueuePair {
  readonly queue: BrokerQueue;
  readonly other: BrokerQueue;
}

export interface OpenOptions extends Partial<QueueSettings> {
  /** A queue's name; by default one that was never used before. */
  readonly name?: string;
}

export interface CaseContext extends QueuePair {
  /** The connection that `queue` belongs to, and the one that `other` belongs to. */
  readonly broker: Broker;
  readonly otherBroker: Broker;
  /** A span short enough to be waited for in real time: use it for leases, windows and delays that must pass. */
  readonly shortMs: number;
  /** Opens one more queue (over both connections) with other settings. */
  open(options?: OpenOptions): Promise<QueuePair>;
  /** A third connection and so on; closed at the case's end. */
  connect(): Broker;
  /** A name or id never used before. */
  fresh(prefix: string): string;
  /** Lets at least so much of the broker's time pass. */
  passMs(ms: number): Promise<void>;
  /** Lets `shortMs` pass and a little more, so that whatever took that long is over. */
  passShort(): Promise<void>;
  /** Waits in real time until the condition holds; fails after ten seconds. */
  until(condition: () => boolean, what: string): Promise<void>;
}

/** A running engine under test. */
export interface EngineUnderTest {
  /** A new connection to it. */
  connect(): Broker;
  /** Lets at least so much of the engine's time pass: by moving its clock, or by waiting. */
  passMs(ms: number): Promise<void>;
  stop(): Promise<void>;
}

/** What an adapter provides to be put through the suite. */
export interface Harness {
  /** The adapter's name, as in `Broker.name`. */
  readonly name: string;
  /** What this adapter or its engine does not have, each with the reason. Cases that need it are not run. */
  readonly lacks: Readonly<Partial<Record<CaseNeed, string>>>;
  /** See {@linkcode CaseContext.shortMs}. */
  readonly shortMs: number;
  start(): Promise<EngineUnderTest>;
}

/** The settings of `queue` and `other`: a lease and a window that no case outlives by accident. */
export const LONG_MS = 60_000;

/** Whether an adapter is to be put through a case. */
export function applies(one: ConformanceCase, harness: Harness): boolean {
  return one.needs.every((need) => harness.lacks[need] === undefined);
}

/** Fails unless the broker declares just what its harness says it has. */
export function checkDeclared(cases: readonly ConformanceCase[], harness: Harness, broker: Broker): void {
  for (const need of new Set(cases.flatMap((one) => one.needs))) {
    if (need === "simulatedTime") continue;
    const declared = broker.capabilities.has(need);
    const lacked = harness.lacks[need] !== undefined;
    that(
      declared !== lacked,
      `${need} is ${declared ? "declared, yet lacked" : "neither declared nor lacked"}`,
    );
  }
  that(broker.name === harness.name, `the broker's name is ${broker.name}`);
}

let serial = 0;

/** Runs one case on an engine, with fresh connections and a fresh queue, and closes what it opened. */
export async function runCase(
  one: ConformanceCase,
  harness: Harness,
  engine: EngineUnderTest,
): Promise<void> {
  const opened: Broker[] = [];
  const connect = () => {
    const broker = engine.connect();
    opened.push(broker);
    return broker;
  };
  const fresh = (prefix: string) => {
    serial += 1;
    return `${prefix}-${serial}`;
  };
  const broker = connect();
  const otherBroker = connect();
  const open = async (options: OpenOptions = {}): Promise<QueuePair> => {
    const settings = {
      leaseMs: options.leaseMs ?? LONG_MS,
      requestTimeoutMs: options.requestTimeoutMs ?? 10_000,
      dedupeWindowMs: options.dedupeWindowMs ?? LONG_MS,
    };
    const name = options.name ?? fresh("case");
    const pair = { queue: broker.queue(name, settings), other: otherBroker.queue(name, settings) };
    await pair.queue.open();
    await pair.other.open();
    return pair;
  };
  try {
    const context: CaseContext = {
      ...(await open()),
      broker,
      otherBroker,
      shortMs: harness.shortMs,
      open,
      connect,
      fresh,
      passMs: (ms) => engine.passMs(ms),
      passShort: () => engine.passMs(Math.ceil(harness.shortMs * 1.1)),
      until,
    };
    await one.run(context);
  } finally {
    for (const each of opened) await each.close();
  }
}

async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!condition()) {
    that(Date.now() < deadline, `Waited ten seconds in vain until ${what}`);
    await new Promise<void>((resolve) => setTimeout(resolve, 2));
  }
}
