/**
 * The HTTP app that stands beside a worker, or alone: enqueue, look, tend, drain, health, metrics. It runs wherever Hono does.
 *
 * @module
 */
import { Hono } from "hono/tiny";
import type { Broker, QueueSizes } from "../broker.ts";
import {
  assertDefinition,
  assertEngines,
  assertFlag,
  assertHearers,
  assertOffers,
  assertSignal,
} from "../deps.ts";
import { BrokerError } from "../errors.ts";
import type { LogSink } from "../job.ts";
import { assertKnownFields } from "../known_fields.ts";
import type { Platform } from "../platform.ts";
import { Producer } from "../producer.ts";
import type { RunningWorker } from "../start.ts";
import type { WorkerDefinition } from "../worker.ts";
import { answerErrors } from "./answers.ts";
import { guard } from "./auth.ts";
import { DrainLock } from "./drain_lock.ts";
import { drainRoute } from "./drain_route.ts";
import { enqueueRoutes } from "./enqueue_routes.ts";
import { Health } from "./health.ts";
import { LOOK, refuseOtherMethods } from "./known.ts";
import { METRICS_TYPE, renderMetrics } from "./metrics.ts";
import { queueRoutes, reportQueues } from "./queue_routes.ts";
import { QueueRegistry } from "./registry.ts";

export interface AppOptions {
  /**
   * The worker's definition: its queues are those served, bodies are checked against their schemas. Without one every well-formed queue name is served, and
   * nothing can be drained.
   */
  readonly definition?: WorkerDefinition;
  readonly broker: Broker;
  readonly platform: Platform;
  /** The worker that runs beside the app, for its counters and its health. */
  readonly worker?: RunningWorker;
  /** The secret callers send as `Authorization: Bearer …`. */
  readonly token?: string;
  /**
   * Whether callers must send it. False only for an app bound to a loopback address; then requests that come from a web page of another origin or under
   * another host name are refused.
   */
  readonly requireToken: boolean;
  /** The largest body of one job, in bytes. Default 1 MiB; the broker's own limit holds too. */
  readonly maxBodyBytes?: number;
  /** The largest NDJSON request, in bytes. Default 16 MiB. */
  readonly maxRequestBytes?: number;
  /** The most lines of one NDJSON request. Default 100,000. */
  readonly maxLines?: number;
  /** Ends a running drain, for a process that stops. */
  readonly stopping?: AbortSignal;
  /** Shared by the apps of one instance, where each request has an app of its own. By default the app has its own lock. */
  readonly drainLock?: DrainLock;
  /** Where faults of the app itself are told. By default nowhere. */
  readonly log?: LogSink;
}

const APP_FIELDS: ReadonlySet<string> = new Set<keyof AppOptions>([
  "definition",
  "broker",
  "platform",
  "worker",
  "token",
  "requireToken",
  "maxBodyBytes",
  "maxRequestBytes",
  "maxLines",
  "stopping",
  "drainLock",
  "log",
]);

/**
 * Makes the app. Does no I/O.
 *
 * @throws {TypeError} when an option is unknown, missing or of the wrong kind; when a token is required and none is given, or one that is not printable ASCII without space.
 * @throws {RangeError} when a limit is not a whole number from 1 on.
 */
export function createApp(options: AppOptions): Hono {
  assertUsable(options);
  const { definition, broker, platform, worker, log } = options;
  const maxBodyBytes = positive("maxBodyBytes", options.maxBodyBytes ?? 1_048_576);
  const maxRequestBytes = positive("maxRequestBytes", options.maxRequestBytes ?? 16 * 1_048_576);
  const maxLines = positive("maxLines", options.maxLines ?? 100_000);
  const registry = new QueueRegistry(definition, broker);
  const producer = new Producer({ broker, platform });
  const health = new Health(registry, platform, worker);

  const app = new Hono();
  app.onError(answerErrors(log));
  app.notFound((c) => c.json({ error: "Cannot find this: no such path", code: "not-found" }, 404));

  app.get("/health", async (c) => {
    const status = await health.status();
    return c.json({ status }, status === "ok" ? 200 : 503);
  });
  refuseOtherMethods(app, "/health", LOOK);

  const guarded = guard({ token: options.token, requireToken: options.requireToken });
  app.use("/v1/*", guarded);
  app.use("/metrics", guarded);
  app.route("/v1", enqueueRoutes({ registry, producer, maxBodyBytes, maxRequestBytes, maxLines }));
  app.route("/v1", queueRoutes({ registry, worker }));
  const { stopping, drainLock: lock = new DrainLock() } = options;
  app.route("/v1", drainRoute({ registry, definition, broker, platform, log, stopping, lock }));

  app.get("/metrics", async (c) => {
    let brokerUp = true;
    const sizes = new Map<string, QueueSizes>();
    try {
      for (const report of await reportQueues({ registry, worker })) {
        if (report.sizes !== null) sizes.set(report.queue, report.sizes);
      }
    } catch (error) {
      // The worker's counters are worth most when the broker is gone.
      if (!(error instanceof BrokerError)) throw error;
      brokerUp = false;
    }
    const text = renderMetrics({
      stats: worker?.stats() ?? [],
      sizes,
      brokerUp,
      brokerRequests: broker.requests,
    });
    return c.text(text, 200, { "Content-Type": METRICS_TYPE });
  });
  refuseOtherMethods(app, "/metrics", LOOK);
  return app;
}

/** Without a token a caller is let in for being on this machine: nothing that is merely left out may mean that. */
function assertUsable(options: AppOptions): void {
  const what = "make the HTTP app";
  assertKnownFields(what, "", options, APP_FIELDS);
  assertEngines(what, options);
  assertFlag(what, "requireToken", options.requireToken);
  if (options.definition !== undefined) assertDefinition(what, options.definition);
  assertHearers(what, { log: options.log });
  assertSignal(what, options.stopping, "stopping");
  assertOffers(what, "worker", options.worker, "stats", "give what startWorker(…) answered");
  assertOffers(what, "drainLock", options.drainLock, "take", "give a new DrainLock()");
}

function positive(field: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new RangeError(`Cannot make the HTTP app: ${field} is ${value}; give a whole number from 1 on`);
}
