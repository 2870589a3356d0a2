/**
 * What a process of a chaos run is told, how it begins, and how it is ended: by its parent's signal, or by its parent's end.
 *
 * @module
 */
import { bunPlatform, chooseBroker, openBroker } from "../../runtimes/bun/mod.ts";
import { type Broker, BrokerRefusedError, type Platform, queue } from "../../src/mod.ts";

/** How long the leases of a run are, in milliseconds. */
export const LEASE_MS = 2_000;
/** How often a job that kills its worker may do so. */
export const POISON_ATTEMPTS = 3;

/** The body is of no use to anyone. */
export const work = queue<{ readonly pad: string }>("chaos");
/** Each of its jobs kills the worker that runs it. */
export const poison = queue<{ readonly pad: string }>("poison");

export interface ProcessSettings {
  /** The broker's name on a command line. */
  readonly broker: string;
  /** Where notes go. */
  readonly notes: string;
  /** Tells this process apart from all others of the run; what is drawn by chance is drawn from it and the seed. */
  readonly name: string;
  readonly seed: number;
}

export interface ChaosProcess {
  readonly settings: ProcessSettings;
  readonly platform: Platform;
  readonly broker: Broker;
}

/** Reads the settings and opens the broker. A process whose parent has gone ends itself. */
export async function beginProcess(): Promise<ChaosProcess> {
  const settings: ProcessSettings = JSON.parse(process.env.EDDY_CHAOS ?? "{}");
  process.stdin.on("end", () => process.exit(9)).resume();
  const platform = bunPlatform();
  const broker = await openBroker(chooseBroker(settings.broker, process.env), platform, () => {});
  return { settings, platform, broker };
}

/** Does something again until it succeeds: servers are down now and then. A refusal is final. */
export async function untilDone<T>(what: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await what();
    } catch (error) {
      if (error instanceof BrokerRefusedError || error instanceof TypeError || error instanceof RangeError) {
        throw error;
      }
      await Bun.sleep(50);
    }
  }
}
