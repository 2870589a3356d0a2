/**
 * A producer process of a chaos run: enqueues under ids of its own until it is told to stop. What was not answered is sent again, with the same ids, until it is.
 *
 * @module
 */
import { Producer } from "../../src/mod.ts";
import { Dice } from "../simulation/dice.ts";
import { noteTaker } from "./notes.ts";
import { beginProcess, poison, untilDone, work } from "./process.ts";

const { settings, platform, broker } = await beginProcess();
const note = noteTaker(settings.notes);
const dice = new Dice(settings.seed, settings.name);
const producer = new Producer({ broker, platform, requestTimeoutMs: 1_000 });
let stopping = false;
platform.onStop(() => {
  stopping = true;
});

for (let batch = 1; !stopping; batch += 1) {
  const isPoison = dice.chance(0.008);
  const jobs = Array.from({ length: isPoison ? 1 : dice.whole(1, 8) }, (_, n) => ({
    id: `${settings.name}-${batch}-${n}`,
    body: { pad: "x".repeat(dice.whole(1, 200)) },
  }));
  await untilDone(() => producer.enqueueMany(isPoison ? poison : work, jobs));
  note(
    isPoison ? "acceptedPoison" : "accepted",
    jobs.map(({ id }) => id),
  );
  // The pace that the workers can keep on a small machine.
  await Bun.sleep(dice.whole(20, 80));
}
await broker.close();
process.exit(0);
