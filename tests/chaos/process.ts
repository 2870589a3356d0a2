/**
 * What a process of a chaos run is told, how it begins, and how it is ended: by its parent's signal, or by its parent's end.
 *
 * @module
 */
import { bunPlatform, chooseBroker, openBroker } from "../../runtimes/bun/mod.ts";
import { type Broker, BrokerRefusedError, type Platform } from "../../src/mod.ts";

export interface ProcessSettings {
  /** The broker's name on a command line, or the address of an HTTP surface. */
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

/** Reads the settings. A process whose parent has gone ends itself. */
export function readSettings(): ProcessSettings {
  process.stdin.on("end", () => process.exit(9)).resume();
  return JSON.parse(process.env.EDDY_CHAOS ?? "{}");
}

/** Reads the settings and opens the broker. */
export async function beginProcess(): Promise<ChaosProcess> {
  const settings = readSettings();
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
