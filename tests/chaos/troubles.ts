/**
 * What a chaos run did to whom and when, as its own account has it.
 *
 * @module
 */
import type { FaultRecord } from "../support/fault_log.ts";

export interface Trouble extends FaultRecord {
  /**
   * A process by its name (`w1.3`: the third at place `w1`), a place, for what was done to the network before it (`w1`), `"server"`, or `"machine"` for what nobody did on
   * purpose: a stall of the machine.
   */
  readonly whom: string;
}

/** What was done to processes and servers. What the network did is named as its proxy names it. */
export const KILLED = "killed";
export const STOPPED = "stopped";
export const FROZEN = "frozen past its lease";
export const STALLED = "stalled by the machine";

/** Collects what is done to processes and to a server. */
export class Troubles {
  readonly #records: { kind: string; whom: string; fromMs: number; toMs: number }[] = [];

  get records(): readonly Trouble[] {
    return this.#records;
  }

  /** Notes what was over just now, and had lasted so many milliseconds. */
  add(kind: string, whom: string, lastedMs = 0): void {
    const toMs = Date.now();
    this.#records.push({ kind, whom, fromMs: toMs - lastedMs, toMs });
  }

  /** Notes that something begins to be done; answers the function that notes when it is over. */
  begin(kind: string, whom: string): () => void {
    const record = { kind, whom, fromMs: Date.now(), toMs: Number.POSITIVE_INFINITY };
    this.#records.push(record);
    return () => {
      record.toMs = Math.min(record.toMs, Date.now());
    };
  }
}

const LOOK_MS = 100;
const LATE_MS = 400;

/** Tells of each time in which this process did not get to run for so long that leases may suffer. Answers the function that ends it. */
export function watchStalls(onStall: (ms: number) => void): () => void {
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    if (now - last > LATE_MS) onStall(Math.round(now - last));
    last = now;
  }, LOOK_MS);
  return () => clearInterval(timer);
}
