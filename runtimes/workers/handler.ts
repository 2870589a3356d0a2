/**
 * A Worker's entry points, made of a worker's definition: `fetch` is the HTTP app, beside what a Worker without HTTP has (`cron.ts`).
 *
 * @module
 */
import { type AppOptions, createApp } from "../../src/http/app.ts";
import { isToken } from "../../src/http/auth.ts";
import { DrainLock } from "../../src/http/drain_lock.ts";
import type { LogSink } from "../../src/job.ts";
import type { Platform } from "../../src/platform.ts";
import { type CronHandler, type CronHandlerOptions, createCronHandler } from "./cron.ts";
import { definitionOf } from "./definition.ts";
import { Invocations } from "./invocations.ts";
import type { InvocationContext } from "./types.ts";

export interface WorkersHandlerOptions<Env> extends CronHandlerOptions<Env> {
  /** The secret that callers of the HTTP app send as a Bearer token. Without it the app serves `/health` only. */
  readonly token?: (env: Env) => string | undefined;
  /** The HTTP app's limits. */
  readonly http?: Pick<AppOptions, "maxBodyBytes" | "maxRequestBytes" | "maxLines">;
}

/** What a Worker exports by default. */
export interface WorkersHandler<Env> extends CronHandler<Env> {
  fetch(request: Request, env: Env, ctx: InvocationContext): Promise<Response>;
}

/**
 * Makes the entry points. Nothing is done when the module is loaded.
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
  const invocations = new Invocations(options);
  const { log } = invocations;
  // Lives as long as the isolate, and is no I/O.
  const drainLock = new DrainLock();

  const serve = async (request: Request, env: Env, platform: Platform): Promise<Response> => {
    const token = options.token?.(env);
    const usable = token !== undefined && isToken(token);
    const health = request.method === "GET" && new URL(request.url).pathname === "/health";
    if (!health && !usable)
      return closed(options.token === undefined ? "none" : token ? "unusable" : "unset", log);
    return await invocations.withBroker(env, platform, async (broker) => {
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
      if (mayHaveBroughtWork(request, response)) platform.keepAlive(invocations.pokeConsumer(env));
      return response;
    });
  };

  return Object.freeze<WorkersHandler<Env>>({
    ...createCronHandler(options),

    async fetch(request, env, ctx) {
      const platform = invocations.platform(ctx, "request");
      const response = serve(request, env, platform);
      // A caller who hangs up ends the invocation: what was begun still has its time to be settled.
      platform.keepAlive(response);
      return await response;
    },
  });
}

/** Whether jobs may be ready that were not. Of many lines, the first can be in the queue when a later one is too much, or the broker fails. */
function mayHaveBroughtWork({ method, url }: Request, { ok, status }: Response): boolean {
  if (method !== "POST" || !/\/(?:jobs|redrive|resume)$/.test(new URL(url).pathname)) return false;
  return ok || status === 413 || status >= 500;
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
