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
  InvalidBodyError,
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
    // What a caller sends may be anything: the queue's schema says whether it is an address.
    const form: { email?: unknown } | null = await c.req.json().catch(() => null);
    const to = form?.email as string;
    // A second press of the button sends no second e-mail. A digest is an id whatever the address is made of.
    const id = `welcome:${await digestOf(JSON.stringify(to))}`;
    const sent = await producer.enqueue(emails, { to, subject: "Welcome" }, { id });
    return c.json({ queued: !sent.duplicate }, 202);
  });
  app.onError((error, c) => {
    // The message names places in the body, and quotes nothing of it.
    if (error instanceof InvalidBodyError) return c.json({ error: error.message }, 422);
    log("error", "A request failed", { kind: error.name });
    return c.json({ error: "The request failed" }, 500);
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

/** The SHA-256 of a text, in hexadecimal. */
async function digestOf(text = ""): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Log lines as JSON, for whatever collects standard output. */
export const jsonLog: LogSink = (level, message, fields) => {
  console.log(JSON.stringify({ level, message, ...fields }));
};
