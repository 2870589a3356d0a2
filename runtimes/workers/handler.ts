/**
 * A Worker's entry points, made of a worker's definition: `fetch` is the HTTP app, `scheduled` drains.
 *
 * Sockets and requests belong to one invocation, so each opens a broker connection of its own and closes it. Nothing is done when the module is loaded.
 *
 * @module
 */
import type { Broker } from "../../src/broker.ts";
import { type BudgetOptions, type DrainReport, drain } from "../../src/drain.ts";
import type { EventListener } from "../../src/events.ts";
import { type AppOptions, createApp } from "../../src/http/app.ts";
import { isToken } from "../../src/http/auth.ts";
import { DrainLock } from "../../src/http/drain_lock.ts";
import type { LogSink } from "../../src/job.ts";
import type { Platform, PlatformLimits } from "../../src/platform.ts";
import { Producer } from "../../src/producer.ts";
import type { ConsumerObjectStub } from "./consumer_object.ts";
import { type DefinitionSource, definitionOf } from "./definition.ts";
import type { WorkersPlan, WorkersTrigger } from "./limits.ts";
import { consoleLog } from "./log.ts";
import { workersPlatform } from "./platform.ts";
import type { InvocationContext, ScheduledEvent } from "./types.ts";

export interface WorkersDrainOptions {
  /** The queues a cron drains. By default all of the definition. */
  readonly queues?: readonly string[];
  /** What a cron's run may spend. By default what the plan allows. */
  readonly budget?: BudgetOptions;
}

export interface WorkersHandlerOptions<Env> {
  readonly definition: DefinitionSource<Env>;
  /** Makes the connection of one invocation, which closes it: `(env) => new RedisBroker({ url: env.…, token: env.… })`. */
  readonly broker: (env: Env, platform: Platform) => Broker | Promise<Broker>;
  /** The secret that callers of the HTTP app send as a Bearer token. Without it the app serves `/health` only. */
  readonly token?: (env: Env) => string | undefined;
  /** The account's plan. Default `"free"`: a run that keeps its limits keeps the paid plan's. */
  readonly plan?: WorkersPlan;
  /** Replaces any of the limits of an invocation. */
  readonly limits?: Partial<PlatformLimits>;
  /** What `scheduled` does; `false` for no drain, where an object consumes. */
  readonly drain?: WorkersDrainOptions | false;
  /** The consumer's object, if there is one: poked after an enqueue by HTTP or `produce`, and made sure of by each cron. */
  readonly consumer?: (env: Env) => ConsumerObjectStub;
  /** The HTTP app's limits. */
  readonly http?: Pick<AppOptions, "maxBodyBytes" | "maxRequestBytes" | "maxLines">;
  /** Where log lines go. By default the console, as JSON. */
  readonly log?: LogSink;
  /** Hears the events of a cron's run. */
  readonly on?: EventListener;
  /** Told what each cron's run reported. */
  readonly onReport?: (report: DrainReport, env: Env) => void;
}

/** What a Worker exports by default. */
export interface WorkersHandler<Env> {
  fetch(request: Request, env: Env, ctx: InvocationContext): Promise<Response>;
  scheduled(event: ScheduledEvent, env: Env, ctx: InvocationContext): Promise<void>;
  /** Enqueues from the Worker's own code: gives `work` a producer for as long as it takes, and answers what it answers. */
  produce<T>(env: Env, ctx: InvocationContext, work: (producer: Producer) => Promise<T>): Promise<T>;
}

/**
 * Makes the entry points.
 *
 * @example
 * ```ts
 * export default createWorkersHandler<Env>({
 *   definition: worker,
 *   broker: (env) => new RedisBroker({ url: env.REDIS_URL, token: env.REDIS_TOKEN }),
 *   token: (env) => env.EDDY_TOKEN,
 * });
 * ```
 */
export function createWorkersHandler<Env>(options: WorkersHandlerOptions<Env>): WorkersHandler<Env> {
  const log = options.log ?? consoleLog;
  // Lives as long as the isolate, and is no I/O.
  const drainLock = new DrainLock();
  const platformOf = (ctx: InvocationContext, trigger: WorkersTrigger) =>
    workersPlatform({ ctx, trigger, plan: options.plan, limits: options.limits });

  const withBroker = async <T>(
    env: Env,
    platform: Platform,
    work: (broker: Broker) => Promise<T>,
  ): Promise<T> => {
    const broker = await options.broker(env, platform);
    try {
      return await work(broker);
    } finally {
      platform.keepAlive(broker.close());
    }
  };

  const poke = (env: Env, platform: Platform) => {
    if (options.consumer === undefined) return;
    // Should it not arrive, the consumer looks by itself before long.
    platform.keepAlive(options.consumer(env).poke());
  };

  const serve = async (request: Request, env: Env, platform: Platform): Promise<Response> => {
    const token = options.token?.(env);
    const usable = token !== undefined && isToken(token);
    const health = request.method === "GET" && new URL(request.url).pathname === "/health";
    if (!health && !usable)
      return closed(options.token === undefined ? "none" : token ? "unusable" : "unset", log);
    return await withBroker(env, platform, async (broker) => {
      const { fetch } = createApp({
        ...options.http,
        definition: definitionOf(options.definition, env),
        broker,
        platform,
        requireToken: true,
        // Health needs none; what else there is refuses without one.
        token: usable ? token : platform.randomId(),
        drainLock,
        log,
      });
      const response = await fetch(request);
      if (response.ok && request.method === "POST" && /\/jobs$/.test(new URL(request.url).pathname)) {
        poke(env, platform);
      }
      return response;
    });
  };

  return Object.freeze<WorkersHandler<Env>>({
    async fetch(request, env, ctx) {
      const platform = platformOf(ctx, "request");
      const response = serve(request, env, platform);
      // A caller who hangs up ends the invocation: what was begun still has its time to be settled.
      platform.keepAlive(response);
      return await response;
    },

    async scheduled(event, env, ctx) {
      const platform = platformOf(ctx, "cron");
      if (options.consumer !== undefined) await options.consumer(env).start();
      if (options.drain === false) return;
      const { queues, budget } = options.drain ?? {};
      const report = await withBroker(env, platform, (broker) =>
        drain(definitionOf(options.definition, env), {
          broker,
          platform,
          queues,
          budget,
          log,
          on: options.on,
        }),
      );
      log("info", "Drained", { cron: event.cron, ...report });
      options.onReport?.(report, env);
    },

    async produce(env, ctx, work) {
      const platform = platformOf(ctx, "request");
      return await withBroker(env, platform, async (broker) => {
        const result = await work(new Producer({ broker, platform }));
        poke(env, platform);
        return result;
      });
    },
  });
}

/** The answer where no token is set, or one that nobody can send: the HTTP app takes jobs and runs them, so it is never open to everybody. */
function closed(token: "none" | "unset" | "unusable", log: LogSink): Response {
  if (token === "none") {
    return Response.json({ error: "Cannot find this: no such path", code: "not-found" }, { status: 404 });
  }
  const fault =
    token === "unset" ? "is not set; set it" : "is not printable ASCII without space; set another";
  const error = `Cannot serve: the secret that callers must send ${fault} with wrangler secret put`;
  log("error", error, {});
  return Response.json({ error, code: "not-configured" }, { status: 503 });
}
