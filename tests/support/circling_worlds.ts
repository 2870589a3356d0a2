/**
 * Worlds that go round in a circle, played in a process of their own: hundreds of thousands of turns of the event loop take long where much else hangs on it.
 * Prints what each was ended by.
 *
 * @module
 */
import { SimulatedPlatform } from "../../runtimes/simulated.ts";

const said = (error: unknown) =>
  error instanceof Error && error.message.includes("goes round in a circle") ? "circle" : "other";

if (import.meta.main) {
  for (const wait of [0, 1e-12]) {
    const platform = new SimulatedPlatform();
    platform.spend(1_000_000);
    const again = () => {
      platform.setTimer(wait, again);
    };
    again();
    console.log(await platform.pass(10).then(() => "passed", said));
  }
  // One that never comes to rest, and catches the error itself.
  const platform = new SimulatedPlatform();
  let caught = 0;
  const restless = (async () => {
    for (let turn = 0; caught === 0 && turn < 1_000_000; turn += 1) {
      await Promise.resolve();
      try {
        platform.setTimer(0, () => {});
      } catch {
        caught += 1;
      }
    }
  })();
  console.log(await platform.run(new Promise(() => {})).then(() => "passed", said), caught);
  await restless;
}
