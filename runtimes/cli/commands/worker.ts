/**
 * `worker`: a long-lived worker.
 *
 * @module
 */
import { brokerBackoffMs } from "../../../src/backoff.ts";
import type { Broker } from "../../../src/broker.ts";
import { BrokerError, BrokerRefusedError } from "../../../src/errors.ts";
import { createApp } from "../../../src/http/app.ts";
import { assertToken } from "../../../src/http/auth.ts";
import type { LogSink } from "../../../src/job.ts";
import { type RunningWorker, startWorker } from "../../../src/start.ts";
import type { WorkerDefinition } from "../../../src/worker.ts";
import { type FetchHandler, type HttpServer, isLoopback, parseAddress } from "../address.ts";
import { describeBroker } from "../broker_spec.ts";
import {
  BROKER_FLAG,
  BROKER_HELP,
  type Context,
  defineCommand,
  FAILED,
  FAILED_HELP,
  SIGNAL_EXITS,
} from "../command.ts";
import { EventLog } from "../event_log.ts";
import { UsageError } from "../flags.ts";
import { loadWorker } from "../load_worker.ts";
import { printingLog } from "../log.ts";
import { withBroker } from "../queues.ts";
import { logStrayFaults } from "../stray_faults.ts";

/** The largest body of a job taken in by HTTP where nothing is said, in bytes. */
const MAX_BODY_BYTES = 1_048_576;

/** How long HTTP requests in flight may take once the worker has stopped, in milliseconds. */
const HTTP_WAIT_MS = 1_000;

export default defineCommand({
  name: "worker",
  args: "[FILE]",
  summary: "Run a worker until it is told to stop",
  about: `Runs the worker of FILE: a module whose default export is defineWorker({ … }), or a function from the environment to one.
Without FILE it is ./worker.ts (.js, .mjs), and where Eddy's own checkout has none its example.
Log lines go to standard output.

SIGTERM or SIGINT stops it: nothing starts any more, running jobs finish within the worker's graceMs (10,000 by default), the others are
given back. A second signal ends it at once. A broker that fails later is tried again and again; one that refuses the
worker by then (its login was changed or has expired, or a permission was taken away) ends it with 1.

With --http it serves enqueueing, stats, drain, health and metrics. Bound to a loopback address it needs no token; bound to another, or
when EDDY_HTTP_TOKEN is set, callers send that token as \`Authorization: Bearer …\`.`,
  exits: {
    0: "it was told to stop, and stopped",
    1: `${FAILED_HELP}; or a handler ended the process`,
    ...SIGNAL_EXITS,
  },
  notes: BROKER_HELP,
  flags: {
    broker: BROKER_FLAG,
    http: {
      kind: "text",
      value: "[HOST:]PORT",
      help: "serve HTTP there, host 127.0.0.1 without one; off by default",
    },
    "max-body-bytes": {
      kind: "count",
      unit: "bytes",
      least: 1,
      help: `the largest body of a job taken in by HTTP; default ${MAX_BODY_BYTES}`,
    },
    wait: {
      kind: "switch",
      help: "while the broker cannot be reached at the start, try again instead of ending",
    },
    json: { kind: "switch", help: "log JSON lines" },
    verbose: { kind: "switch", help: "log each job and claim too" },
  },
  async run(context, { flags, positionals }) {
    if (positionals.length > 1)
      throw new UsageError("Cannot read the arguments: there are too many; name one FILE");
    const { definition, file, isExample } = await loadWorker(positionals[0], context);
    const log = printingLog({
      json: flags.json,
      least: flags.verbose ? "debug" : "info",
      print: (line) => context.io.out(line),
      wallNow: () => context.platform.wallNow(),
    });
    const http = httpOptions(flags.http, context, flags["max-body-bytes"]);
    return await withBroker(
      context,
      flags.broker,
      async (broker, spec) => {
        log("info", isExample ? "Starting the example, for there is no ./worker.ts" : "Starting", {
          worker: file,
          broker: describeBroker(spec),
          queues: definition.queues.map((one) => one.handler.queue.name).join(","),
        });
        return await work({ context, definition, broker, log, http, wait: flags.wait });
      },
      (text) => log("warn", text, {}),
    );
  },
});

interface HttpChoice {
  readonly address: ReturnType<typeof parseAddress>;
  readonly token: string | undefined;
  readonly maxBodyBytes: number;
}

function httpOptions(
  flag: string | undefined,
  context: Context,
  maxBodyBytes: number | undefined,
): HttpChoice | undefined {
  if (flag === undefined) {
    if (maxBodyBytes === undefined) return undefined;
    throw new UsageError(
      "Cannot use --max-body-bytes: nothing is taken in without --http; give both or none",
    );
  }
  const address = addressOf(flag);
  const token = context.env.EDDY_HTTP_TOKEN || undefined;
  if (token === undefined && !isLoopback(address)) {
    throw new UsageError(
      "Cannot serve HTTP: --http is no loopback address and there is no token; set EDDY_HTTP_TOKEN or bind to 127.0.0.1",
    );
  }
  if (token !== undefined) assertToken(token);
  return { address, token, maxBodyBytes: maxBodyBytes ?? MAX_BODY_BYTES };
}

function addressOf(flag: string): ReturnType<typeof parseAddress> {
  try {
    return parseAddress(flag);
  } catch (error) {
    throw error instanceof RangeError ? new UsageError(error.message) : error;
  }
}

interface Work {
  readonly context: Context;
  readonly definition: WorkerDefinition;
  readonly broker: Broker;
  readonly log: LogSink;
  readonly http: HttpChoice | undefined;
  readonly wait: boolean;
}

async function work(task: Work): Promise<number> {
  const { context, log } = task;
  const forgetStrays = logStrayFaults(log);
  const stopping = new AbortController();
  let running: RunningWorker | undefined;
  const forget = context.platform.onStop((reason) => {
    stopping.abort(reason);
    // What goes wrong in a stop is told by `done` as well, which is waited for below.
    running?.stop(reason).catch(() => {});
  });
  const events = new EventLog(context.platform, log);
  const forgetWords = context.atSecondSignal(() => events.heldBehind());
  let server: HttpServer | undefined;
  let answer: FetchHandler = () => Response.json(STARTING, { status: 503 });
  try {
    // Before any job is claimed: an address that cannot be had must not cost one its attempt.
    if (task.http !== undefined)
      server = context.shell.serve(task.http.address, (request) => answer(request));
    running = await start(task, events, stopping.signal);
    if (running === undefined) return 0;
    if (stopping.signal.aborted) await running.stop(String(stopping.signal.reason));
    if (server !== undefined && task.http !== undefined) {
      answer = appOf(task, task.http, running, stopping.signal);
      log("info", "Serving HTTP", { url: server.url });
    }
    await running.done;
    return 0;
  } catch (error) {
    await running?.stop("its command failed");
    if (!(error instanceof BrokerRefusedError) || !events.toldRefusal) throw error;
    context.io.err("Stopped: the broker is refused, as the log says");
    return FAILED;
  } finally {
    await server?.stop(HTTP_WAIT_MS);
    forget();
    forgetWords();
    forgetStrays();
  }
}

/** Starts the worker; with `wait` again and again until the broker can be reached. Answers nothing when it was told to stop meanwhile. */
async function start(
  task: Work,
  events: EventLog,
  stopping: AbortSignal,
): Promise<RunningWorker | undefined> {
  const { platform } = task.context;
  for (let failures = 1; ; failures += 1) {
    try {
      const running = await startWorker(task.definition, {
        broker: task.broker,
        platform,
        log: task.log,
        on: events.listener,
      });
      task.log("info", "Ready", {});
      return running;
    } catch (error) {
      if (!task.wait || !(error instanceof BrokerError) || error instanceof BrokerRefusedError) throw error;
      const retryInMs = brokerBackoffMs(failures, platform.random());
      task.log("warn", "The broker cannot be reached; trying again", {
        error: error.message,
        retryInMs: Math.round(retryInMs),
      });
      await pause(platform, retryInMs, stopping);
      if (stopping.aborted) return undefined;
    }
  }
}

function pause(platform: Context["platform"], ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      cancel();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const cancel = platform.setTimer(ms, done);
    if (signal.aborted) done();
    else signal.addEventListener("abort", done);
  });
}

/** What is answered until the worker has started. */
const STARTING = { error: "Cannot answer yet: the worker is starting; ask again", code: "starting" };

function appOf(task: Work, http: HttpChoice, worker: RunningWorker, stopping: AbortSignal): FetchHandler {
  const { broker, definition, log } = task;
  const app = createApp({
    definition,
    broker,
    platform: task.context.platform,
    worker,
    requireToken: http.token !== undefined,
    ...(http.token === undefined ? {} : { token: http.token }),
    maxBodyBytes: http.maxBodyBytes,
    maxRequestBytes: Math.max(16 * 1_048_576, http.maxBodyBytes),
    stopping,
    log,
  });
  return (request) => app.fetch(request);
}
