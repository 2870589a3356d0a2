/**
 * A drain started by cron on Deno: every minute the queues of `worker.ts` are worked empty, within 50 seconds. Runs never overlap: Deno
 * looks for the next minute when one has ended.
 *
 * ```sh
 * node_modules/.bin/deno task example:cron
 * ```
 *
 * @module
 */
import process from "node:process";
import { chooseBroker, denoPlatform, openBroker } from "../runtimes/deno/mod.ts";
import { type DrainReport, drain } from "../src/mod.ts";
import worker from "./worker.ts";

const SCHEDULE = "* * * * *";
const BUDGET = { maxMs: 50_000 };

const platform = denoPlatform();

/** One run. A signal ends it early: running jobs finish, the others go back. */
export async function tick(signal?: AbortSignal): Promise<DrainReport> {
  const broker = await openBroker(chooseBroker(undefined, process.env), platform);
  try {
    return await drain(worker, { broker, platform, signal, budget: BUDGET });
  } finally {
    await broker.close();
  }
}

if (import.meta.main) {
  const stopping = new AbortController();
  platform.onStop(() => stopping.abort());
  const registered = Deno.cron("drain", SCHEDULE, { signal: stopping.signal }, async () => {
    try {
      console.log(JSON.stringify(await tick(stopping.signal)));
    } catch (error) {
      // The next minute tries again.
      console.error(String(error));
    }
  });
  console.log(`Draining by the schedule ${SCHEDULE}`);
  await registered;
}
