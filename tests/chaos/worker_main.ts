/**
 * A worker process of a chaos run. It notes what it does to each job before it tells the broker.
 *
 * @module
 */
import { defineWorker, startWorker } from "../../src/mod.ts";
import { Dice } from "../simulation/dice.ts";
import { noteTaker } from "./notes.ts";
import { beginProcess, untilDone } from "./process.ts";
import { LEASE_MS, POISON_ATTEMPTS, poison, work } from "./settings.ts";
import { watchStalls } from "./troubles.ts";

const { settings, platform, broker } = await beginProcess();
const note = noteTaker(settings.notes);
const dice = new Dice(settings.seed, settings.name);
watchStalls((ms) => note("stall", ["-"], ms));

const definition = defineWorker({
  graceMs: 5_000,
  queues: [
    work.handle(
      async (job) => {
        note("start", [job.id], job.attempt);
        // Some outlast the time after which a lease is renewed.
        await Bun.sleep(dice.chance(0.005) ? LEASE_MS / 2 : dice.whole(0, 8));
        note("end", [job.id]);
      },
      // Kills alone must not make a dead letter of an honest job.
      { leaseMs: LEASE_MS, concurrency: 4, maxAttempts: 1_000, backoff: () => 0 },
    ),
    poison.handle(
      (job) => {
        note("start", [job.id], job.attempt);
        process.kill(process.pid, "SIGKILL");
      },
      { leaseMs: LEASE_MS, prefetch: 1, maxAttempts: POISON_ATTEMPTS },
    ),
  ],
});
const worker = await untilDone(() =>
  startWorker(definition, {
    broker,
    platform,
    on: (event) => {
      if (event.type === "settled" && event.verdict === "ack") note("ack", [event.jobId]);
      if (event.type === "lost") note("lost", [event.jobId]);
    },
  }),
);
worker.done.catch((error: unknown) => {
  console.error(`${settings.name}: ${error instanceof Error ? error.message : "ended by an error"}`);
  process.exit(3);
});
platform.onStop(async (reason) => {
  await worker.stop(reason);
  await broker.close();
  process.exit(0);
});
