/**
 * What a worker's code throws outside of any job: in a timer, or in a promise that nobody awaits.
 *
 * @module
 */
import process from "node:process";
import type { LogSink } from "../../src/job.ts";
import { cutErrorText, describeThrown } from "../../src/thrown.ts";
import { placesOf } from "./places.ts";

const EVENTS = ["uncaughtException", "unhandledRejection"] as const;

/**
 * Logs such faults, and lets the process go on: left alone one of them ends a Deno process, with all the jobs that run beside it, and on Bun it
 * is printed as it is. Answers a function that ends it.
 */
export function logStrayFaults(log: LogSink): () => void {
  // It is called where nothing catches: whatever was thrown, one whose fields throw too, it must not throw itself.
  const tell = (thrown: unknown) =>
    log("error", "The worker's code failed outside of any job; await what it starts", {
      error: cutErrorText(describeThrown(thrown)),
      at: placesOf(thrown as Error)[0],
    });
  for (const event of EVENTS) process.on(event, tell);
  return () => {
    for (const event of EVENTS) process.off(event, tell);
  };
}
