/**
 * `drain`: a bounded run.
 *
 * @module
 */
import { type DrainReport, drain } from "../../../src/drain.ts";
import { BrokerRefusedError } from "../../../src/errors.ts";
import {
  BROKER_FLAG,
  BROKER_HELP,
  defineCommand,
  FAILED,
  FAILED_HELP,
  JSON_FLAG,
  SIGNAL_EXITS,
} from "../command.ts";
import { EventLog } from "../event_log.ts";
import { UsageError } from "../flags.ts";
import { loadWorker } from "../load_worker.ts";
import { printingLog } from "../log.ts";
import { defineQueue, withBroker } from "../queues.ts";
import { logStrayFaults } from "../stray_faults.ts";

/** Exit code when the run ended with work left. */
const WORK_LEFT = 3;

export default defineCommand({
  name: "drain",
  args: "[FILE]",
  summary: "Run jobs until the queues are empty or the budget is used up",
  about: `Runs the worker of FILE (else ./worker.ts, else, in Eddy's own checkout, the example) until its queues are empty or a budget ends the run;
then everything is settled, what was not started is given back, and a report is printed to standard output.
Log lines go to standard error. SIGTERM or SIGINT ends the run gracefully, a second one at once.`,
  exits: {
    0: "no job was ready any more (what is delayed, or held by others, may be left)",
    1: `${FAILED_HELP}; or a handler ended the process`,
    [WORK_LEFT]: "the run ended with work left, or with ready jobs in paused queues",
    ...SIGNAL_EXITS,
  },
  notes: BROKER_HELP,
  flags: {
    broker: BROKER_FLAG,
    queue: { kind: "list", value: "QUEUE", help: "drain only this queue of the worker" },
    "max-ms": {
      kind: "count",
      unit: "milliseconds",
      least: 1,
      help: "how long the run may take; no limit without it",
    },
    "max-requests": {
      kind: "count",
      unit: "requests",
      least: 1,
      help: "how many HTTP requests it may make, to the broker and by job.fetch; no limit without it",
    },
    "max-jobs": {
      kind: "count",
      unit: "jobs",
      least: 1,
      help: "how many jobs it may run; no limit without it",
    },
    json: JSON_FLAG,
    verbose: { kind: "switch", help: "log each job and claim too" },
  },
  async run(context, { flags, positionals }) {
    const { io, platform } = context;
    if (positionals.length > 1)
      throw new UsageError("Cannot read the arguments: there are too many; name one FILE");
    const { definition, file, isExample } = await loadWorker(positionals[0], context);
    for (const name of flags.queue) defineQueue(name, definition);
    const log = printingLog({
      json: flags.json,
      least: flags.verbose ? "debug" : "info",
      print: (line) => io.err(line),
      wallNow: () => platform.wallNow(),
    });
    if (isExample) log("info", "Draining with the example, for there is no ./worker.ts", { worker: file });
    const events = new EventLog(platform, log);
    const forgetStrays = logStrayFaults(log);
    const stop = new AbortController();
    const forget = platform.onStop((reason) => stop.abort(reason));
    const forgetWords = context.atSecondSignal(() => events.heldBehind());
    try {
      const report = await withBroker(
        context,
        flags.broker,
        (broker) =>
          drain(definition, {
            broker,
            platform,
            log,
            on: events.listener,
            signal: stop.signal,
            budget: {
              maxMs: flags["max-ms"],
              maxRequests: flags["max-requests"],
              maxJobs: flags["max-jobs"],
            },
            queues: flags.queue.length === 0 ? undefined : flags.queue,
          }),
        (text) => log("warn", text, {}),
      );
      events.close();
      io.out(flags.json ? JSON.stringify(report) : readable(report));
      return report.stopped === "empty" || report.leftReady === 0 ? 0 : WORK_LEFT;
    } catch (error) {
      if (!(error instanceof BrokerRefusedError) || !events.toldRefusal) throw asMisuse(error);
      io.err("Stopped: the broker is refused, as the log says");
      return FAILED;
    } finally {
      events.close();
      forget();
      forgetWords();
      forgetStrays();
    }
  },
});

/** A budget that no job fits into is a flag's fault, and told by the flag's name. */
function asMisuse(error: unknown): unknown {
  const start = "Cannot drain: maxRequests is";
  return error instanceof RangeError && error.message.startsWith(start)
    ? new UsageError(error.message.replace("maxRequests", "--max-requests"))
    : error;
}

const WHY = {
  empty: "no job was ready any more",
  paused: "the queues with jobs left are paused",
  time: "its time is used up",
  requests: "its requests are used up",
  jobs: "its jobs are used up",
  signal: "it was told to stop",
} as const;

/** The report as a sentence. Its first number is the sum of those behind it. */
export function readable(report: DrainReport): string {
  const { jobs, abandoned, requests } = report;
  const ends = (["acked", "retried", "dead", "released", "lost"] as const).filter((end) => report[end] > 0);
  const taken = ends.reduce((sum, end) => sum + report[end], 0);
  const parts = [ends.map((end) => `${report[end]} ${end}`).join(", ")];
  // Not every delivery gets to a handler: an invalid body does not.
  if (jobs !== taken) parts.push(`handlers were called with ${jobs}`);
  if (abandoned > 0) parts.push(`${abandoned} left behind in a handler`);
  const detail = taken === 0 ? "" : ` (${parts.join("; ")})`;
  return `Drained ${taken === 1 ? "1 delivery" : `${taken} deliveries`}${detail} in ${Math.round(report.ms)} ms with ${counted(requests, "request")}; ended because ${why(report)}; left: ${left(report)}`;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

function why({ stopped, noRoomFor }: DrainReport): string {
  if (noRoomFor === undefined) return WHY[stopped];
  const { jobMs, leftMs } = noRoomFor;
  return `a job has been taking about ${Math.ceil(jobMs)} ms, more than the ${Math.floor(leftMs)} ms left carry`;
}

function left(report: DrainReport): string {
  if (report.left === null) return "unknown, for the broker cannot tell or the budget had no room to ask";
  if (report.left === 0) return "0";
  const parts = [
    [report.leftReady, "ready"],
    [report.leftDelayed, "delayed"],
    [report.leftHeld, "held"],
  ]
    .filter(([count]) => (count ?? 0) !== 0)
    .map(([count, state]) => `${count} ${state}`);
  if (report.nextDueMs !== null) parts.push(`the next due in ${report.nextDueMs} ms`);
  return `${report.left} (${parts.join(", ")})`;
}
