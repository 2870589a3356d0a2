/**
 * Looking at queues and tending them: sizes, peek, redrive, pause, resume, clear.
 *
 * @module
 */
import type { Context } from "hono";
import { Hono } from "hono/tiny";
import * as v from "valibot";
import type { BrokerQueue, JobState, PeekedJob, QueueSizes, RawBody } from "../broker.ts";
import { toText } from "../codec.ts";
import { BrokerError } from "../errors.ts";
import type { RunningWorker } from "../start.ts";
import type { QueueStats } from "../stats.ts";
import { brokerRefusal, Refusal } from "./answers.ts";
import { readOptions } from "./body.ts";
import { DO, LOOK, onlyParameters, refuseOtherMethods } from "./known.ts";
import { MOST_REDRIVEN, type Redriven, redriveByIds } from "./redriving.ts";
import type { QueueRegistry } from "./registry.ts";

const DEFAULT_PEEK = 20;
const MOST_PEEKED = 1_000;

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(1));
const RedriveOptions = v.strictObject({
  ids: v.optional(v.pipe(v.array(v.string()), v.minLength(1), v.maxLength(1_000))),
  limit: v.optional(count),
});
const REDRIVE_FORM =
  "give ids, a list of 1 to 1,000 ids, or limit, a whole number from 1 on, or neither, not both";
const ClearOptions = v.strictObject({
  states: v.pipe(v.array(v.picklist(["ready", "delayed", "dead"])), v.minLength(1)),
});

const CLEAR_FORM = 'give states, a list of "ready", "delayed" and "dead" or some of them';

export interface QueueRouteOptions {
  readonly registry: QueueRegistry;
  readonly worker: RunningWorker | undefined;
}

/** What `GET /v1/queues` tells of a queue. */
export interface QueueReport {
  readonly queue: string;
  /** `null` where the broker cannot tell. */
  readonly sizes: QueueSizes | null;
  /** `null` where no worker runs beside the app. */
  readonly stats: QueueStats | null;
}

/** The sizes and counters of every known queue. */
export async function reportQueues(options: QueueRouteOptions): Promise<readonly QueueReport[]> {
  const stats = options.worker?.stats() ?? [];
  return await Promise.all(
    options.registry.names.map(async (name) => {
      const queue = await options.registry.open(name);
      return {
        queue: name,
        sizes: (await queue.sizes?.()) ?? null,
        stats: stats.find((one) => one.queue === name) ?? null,
      };
    }),
  );
}

/** The routes that look at queues and tend them. */
export function queueRoutes(options: QueueRouteOptions): Hono {
  const { registry } = options;
  const routes = new Hono();

  routes.get("/queues", async (c) => {
    onlyParameters(c, []);
    return c.json({ queues: await reportQueues(options) });
  });
  refuseOtherMethods(routes, "/queues", LOOK);

  const peek = "/queues/:queue/:state{ready|delayed|held|dead}";
  routes.get(peek, async (c) => {
    onlyParameters(c, ["limit", "bodies"]);
    const state = c.req.param("state") as JobState;
    const limit = peekLimit(c.req.query("limit"));
    const withBodies = peekBodies(c.req.query("bodies"));
    const queue = await registry.open(c.req.param("queue") ?? "");
    const jobs = await able(queue, "peek", queue.peek)(state, limit, withBodies);
    return c.json({ queue: queue.name, state, jobs: jobs.map((job) => shown(job, withBodies)) });
  });
  refuseOtherMethods(routes, peek, LOOK);

  routes.post("/queues/:queue/redrive", async (c) => {
    onlyParameters(c, [], REDRIVE_FORM);
    const queue = await registry.open(c.req.param("queue"));
    const { ids, limit } = await readOptions(c.req.raw, RedriveOptions, REDRIVE_FORM);
    const redrive = able(queue, "redrive", queue.redrive);
    if (ids === undefined) {
      return c.json({ queue: queue.name, redriven: await redrive({ limit: limit ?? MOST_REDRIVEN }) });
    }
    if (limit !== undefined) {
      throw new Refusal(
        422,
        "invalid-options",
        `Cannot use the request's options: ids and limit do not go together; ${REDRIVE_FORM}`,
      );
    }
    return c.json({ queue: queue.name, ...(await redriveNamed(redrive, ids)) });
  });

  routes.post("/queues/:queue/clear", async (c) => {
    onlyParameters(c, [], CLEAR_FORM);
    const queue = await registry.open(c.req.param("queue"));
    const { states } = await readOptions(c.req.raw, ClearOptions, CLEAR_FORM);
    return c.json({ queue: queue.name, cleared: await able(queue, "clear", queue.clear)(states) });
  });

  routes.post("/queues/:queue/pause", (c) => setPaused(c, registry, true));
  routes.post("/queues/:queue/resume", (c) => setPaused(c, registry, false));
  for (const verb of ["redrive", "clear", "pause", "resume"]) {
    refuseOtherMethods(routes, `/queues/:queue/${verb}`, DO);
  }
  return routes;
}

/**
 * Puts back the dead letters with these ids and answers which ids are none's.
 *
 * @throws {Refusal} 404 when none of them is; 503 when the broker failed, with what was put back before.
 */
async function redriveNamed(
  redrive: NonNullable<BrokerQueue["redrive"]>,
  ids: readonly string[],
): Promise<Redriven> {
  const done: Redriven = { redriven: 0, absent: [] };
  try {
    await redriveByIds(redrive, ids, done);
  } catch (error) {
    throw error instanceof BrokerError ? brokerRefusal(error, { ...done }) : error;
  }
  if (done.redriven > 0) return done;
  throw new Refusal(
    404,
    "no-dead-letter",
    "Cannot redrive: none of the ids is a dead letter's; look at the queue's dead letters, or give no ids to put all back",
    { ...done },
  );
}

async function setPaused(c: Context, registry: QueueRegistry, paused: boolean): Promise<Response> {
  onlyParameters(c, []);
  const queue = await registry.open(c.req.param("queue") ?? "");
  await able(queue, "pause", paused ? queue.pause : queue.resume)();
  return c.json({ queue: queue.name, paused });
}

/** A method that the broker may lack, bound to its queue. */
function able<Args extends unknown[], Result>(
  queue: BrokerQueue,
  capability: string,
  method: ((...args: Args) => Promise<Result>) | undefined,
): (...args: Args) => Promise<Result> {
  if (method !== undefined) return method.bind(queue);
  throw new Refusal(501, "not-offered", `Cannot ${capability}: this broker does not offer it`);
}

function peekLimit(text: string | undefined): number {
  if (text === undefined) return DEFAULT_PEEK;
  const limit = Number(text);
  if (/^\d{1,9}$/.test(text) && limit >= 1 && limit <= MOST_PEEKED) return limit;
  throw new Refusal(
    400,
    "invalid-limit",
    `Cannot use limit: it does not fit; give a whole number from 1 to ${MOST_PEEKED}`,
  );
}

function peekBodies(text: string | undefined): boolean {
  if (text === undefined || text === "false") return false;
  if (text === "true") return true;
  throw new Refusal(400, "invalid-parameter", "Cannot use bodies: it does not fit; give true or false");
}

/** A peeked job as it is told: with its body only when that was asked for. */
export function shown(job: PeekedJob, withBody: boolean): Record<string, unknown> {
  const { body, ...rest } = job;
  return withBody ? { ...rest, ...bodyFields(body) } : rest;
}

/** Text where the bytes are text, else base64, so that what is shown can be turned back into the very bytes. */
function bodyFields(body: RawBody): Record<string, string> {
  try {
    return { body: toText(body) };
  } catch {
    const bytes = body as Uint8Array;
    const units = Array.from(bytes, (byte) => String.fromCharCode(byte));
    return { bodyBase64: btoa(units.join("")) };
  }
}
