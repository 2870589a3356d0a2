/**
 * What a producer of a chaos run does: enqueues under ids of its own until it is told to stop. What was not answered is sent again, with the same ids, until it is.
 *
 * @module
 */
import { Dice } from "../simulation/dice.ts";
import { noteTaker } from "./notes.ts";
import { type ProcessSettings, untilDone } from "./process.ts";
import { poison, work } from "./settings.ts";

export interface PutJob {
  readonly id: string;
  readonly body: { readonly pad: string };
}

export interface ProducerOptions {
  readonly settings: ProcessSettings;
  /** Enqueues to a queue; resolves when all were answered. */
  readonly put: (queue: typeof work, jobs: readonly PutJob[]) => Promise<unknown>;
  readonly isStopping: () => boolean;
  /** One enqueue in so many is of a job that kills its worker. */
  readonly poisonOneIn: number;
}

export async function produce({ settings, put, isStopping, poisonOneIn }: ProducerOptions): Promise<void> {
  const note = noteTaker(settings.notes);
  const dice = new Dice(settings.seed, settings.name);
  for (let batch = 1; !isStopping(); batch += 1) {
    const isPoison = dice.chance(1 / poisonOneIn);
    const jobs = Array.from({ length: isPoison ? 1 : dice.whole(1, 8) }, (_, n) => ({
      id: `${settings.name}-${batch}-${n}`,
      body: { pad: "x".repeat(dice.whole(1, 200)) },
    }));
    await untilDone(() => put(isPoison ? poison : work, jobs));
    note(
      isPoison ? "acceptedPoison" : "accepted",
      jobs.map(({ id }) => id),
    );
    // The pace that the workers can keep on a small machine.
    await Bun.sleep(dice.whole(20, 80));
  }
}
