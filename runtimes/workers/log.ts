/**
 * Log lines as Workers Logs reads them: one JSON object a line.
 *
 * @module
 */
import type { LogSink } from "../../src/job.ts";

/** Prints log lines on the console. */
export const consoleLog: LogSink = (level, message, fields) => {
  console[level](JSON.stringify({ level, message, ...fields }));
};
