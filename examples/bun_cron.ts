/**
 * A drain started by cron on Bun: every minute the queues of `worker.ts` are worked empty, within 50 seconds. Runs never overlap: Bun
 * looks for the next minute when one has ended.
 *
 * ```sh
 * node_modules/.bin/bun examples/bun_cron.ts
 * ```
 *
 * @module
 */
import process from "node:process";
import { bunPlatform, chooseBroker, openBroker } from "../runtimes/bun/mod.ts";
import { type DrainReport, drain } from "../src/mod.ts";
import worker from "./worker.ts";

const SCHEDULE = "* * * * *";
const BUDGET = { maxMs: 50_000 };

const platform = bunPlatform();

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
  const job = Bun.cron(SCHEDULE, async () => {
    try {
      console.log(JSON.stringify(await tick(stopping.signal)));
    } catch (error) {
      // The next minute tries again.
      console.error(String(error));
    }
  });
  platform.onStop(() => {
    job.stop();
    stopping.abort();
  });
  console.log(`The next drain is at ${Bun.cron.parse(job.cron)?.toISOString()}`);
}
