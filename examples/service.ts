/**
 * A service: an HTTP endpoint of its own that enqueues, Eddy's API, and the worker of `worker.ts`, all in one process. The same on
 * every runtime; `bun_service.ts` and `deno_service.ts` start it.
 *
 * @module
 */
import { Hono } from "hono";
import { createApp } from "../src/http/mod.ts";
import {
  type Broker,
  type LogSink,
  type Platform,
  Producer,
  type RunningWorker,
  startWorker,
} from "../src/mod.ts";
import worker, { emails } from "./worker.ts";

export interface ServiceOptions {
  readonly broker: Broker;
  readonly platform: Platform;
  readonly log: LogSink;
  /** What callers of Eddy's API send as a Bearer token; without one only a loopback address may be served. */
  readonly token: string | undefined;
}

export interface Service {
  readonly running: RunningWorker;
  fetch(request: Request): Response | Promise<Response>;
}

/** Starts the worker and makes the app. */
export async function startService({ broker, platform, log, token }: ServiceOptions): Promise<Service> {
  const running = await startWorker(worker, { broker, platform, log });
  const producer = new Producer({ broker, platform });
  const app = new Hono();
  app.post("/signup", async (c) => {
    const { email } = await c.req.json<{ email: string }>();
    // A second press of the button sends no second e-mail.
    const sent = await producer.enqueue(
      emails,
      { to: email, subject: "Welcome" },
      { id: `welcome:${email}` },
    );
    return c.json({ queued: !sent.duplicate }, 202);
  });
  const api = createApp({
    definition: worker,
    broker,
    platform,
    worker: running,
    requireToken: token !== undefined,
    ...(token === undefined ? {} : { token }),
    log,
  });
  app.route("/", api);
  return { running, fetch: (request) => app.fetch(request) };
}

/** Log lines as JSON, for whatever collects standard output. */
export const jsonLog: LogSink = (level, message, fields) => {
  console.log(JSON.stringify({ level, message, ...fields }));
};
