/**
 * A producer process of a chaos run, with a broker of its own.
 *
 * @module
 */
import { Producer } from "../../src/mod.ts";
import { beginProcess } from "./process.ts";
import { produce } from "./producing.ts";

const { settings, platform, broker } = await beginProcess();
const producer = new Producer({ broker, platform, requestTimeoutMs: 1_000 });
let stopping = false;
platform.onStop(() => {
  stopping = true;
});
await produce({
  settings,
  put: (queue, jobs) => producer.enqueueMany(queue, jobs),
  isStopping: () => stopping,
  poisonOneIn: 125,
});
await broker.close();
process.exit(0);
