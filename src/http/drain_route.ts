/**
 * `POST /v1/drain`: a bounded run, started by a cron's call.
 *
 * @module
 */
import { Hono } from "hono/tiny";
import * as v from "valibot";
import type { Broker } from "../broker.ts";
import { drain } from "../drain.ts";
import type { LogSink } from "../job.ts";
import type { Platform } from "../platform.ts";
import type { WorkerDefinition } from "../worker.ts";
import { Refusal } from "./answers.ts";
import { readOptions } from "./body.ts";
import type { DrainLock } from "./drain_lock.ts";
import { DO, onlyParameters, refuseOtherMethods } from "./known.ts";
import type { QueueRegistry } from "./registry.ts";

const amount = v.pipe(v.number(), v.safeInteger(), v.minValue(1));
const DrainOptions = v.strictObject({
  maxMs: v.optional(amount),
  maxRequests: v.optional(amount),
  maxJobs: v.optional(amount),
  queues: v.optional(v.pipe(v.array(v.string()), v.minLength(1))),
});

const DRAIN_FORM =
  "give any of maxMs, maxRequests and maxJobs, whole numbers from 1 on, and queues, a list of names";

export interface DrainRouteOptions {
  readonly registry: QueueRegistry;
  readonly definition: WorkerDefinition | undefined;
  readonly broker: Broker;
  readonly platform: Platform;
  readonly log: LogSink | undefined;
  /** Ends a running drain: what is started finishes, the rest is given back. */
  readonly stopping: AbortSignal | undefined;
  readonly lock: DrainLock;
}

/** How long after a drain's budget of time its lock is freed at the latest, in milliseconds: well beyond any settling. */
const LOCK_MARGIN_MS = 60_000;

/** The route that drains. One drain at a time; a caller who hangs up ends it. */
export function drainRoute(options: DrainRouteOptions): Hono {
  const { definition, broker, platform, log, stopping, lock } = options;
  const routes = new Hono();
  routes.post("/drain", async (c) => {
    onlyParameters(c, [], DRAIN_FORM);
    if (definition === undefined) {
      throw new Refusal(501, "not-offered", "Cannot drain: this app was made without a worker's definition");
    }
    const { queues, ...budget } = await readOptions(c.req.raw, DrainOptions, DRAIN_FORM);
    for (const name of queues ?? []) options.registry.define(name);
    const release = lock.take(platform.now(), (budget.maxMs ?? platform.limits.wallMs) + LOCK_MARGIN_MS);
    if (release === undefined) {
      throw new Refusal(
        409,
        "draining",
        "Cannot drain: a drain is running here already; wait for its report",
      );
    }
    try {
      const caller = c.req.raw.signal;
      const report = await drain(definition, {
        broker,
        platform,
        budget,
        signal: stopping === undefined ? caller : AbortSignal.any([caller, stopping]),
        ...(log === undefined ? {} : { log }),
        ...(queues === undefined ? {} : { queues }),
      });
      return c.json(report);
    } catch (error) {
      // How many requests are too few shows only once the queues are open.
      if (error instanceof RangeError && budget.maxRequests !== undefined) {
        throw new Refusal(422, "invalid-options", error.message);
      }
      throw error;
    } finally {
      release();
    }
  });
  refuseOtherMethods(routes, "/drain", DO);
  return routes;
}
