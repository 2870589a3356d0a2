/**
 * An app over a broker in memory, and how its tests talk to it.
 *
 * @module
 */
import { expect } from "bun:test";
import type { Hono } from "hono";
import * as v from "valibot";
import { MemoryBroker } from "../../adapters/memory.ts";
import { bunPlatform } from "../../runtimes/bun/platform.ts";
import { type AppOptions, createApp } from "../../src/http/mod.ts";
import { defineWorker, type Job, queue, type WorkerDefinition } from "../../src/mod.ts";

export const platform = bunPlatform();

/** Two queues: `emails` with a schema, `notes` of text. */
export function definitionOf(handler: (job: Job<{ to: string }>) => unknown = () => {}): WorkerDefinition {
  const emails = queue("emails", { body: v.object({ to: v.pipe(v.string(), v.email()) }) });
  const notes = queue("notes", { codec: "text" });
  return defineWorker({ queues: [emails.handle(handler), notes.handle(() => {})] });
}

export function memoryBroker(): MemoryBroker {
  return new MemoryBroker({ now: () => platform.now(), wallNow: () => platform.wallNow() });
}

/** An app without a token, as it is bound to a loopback address. */
export function openApp(options: Partial<AppOptions> = {}): Hono {
  return createApp({
    definition: definitionOf(),
    broker: memoryBroker(),
    platform,
    requireToken: false,
    ...options,
  });
}

export interface Answer {
  readonly status: number;
  readonly json: Record<string, unknown>;
  readonly text: string;
}

/** Sends one request; every answer of the app is JSON but the metrics. */
export async function ask(app: Hono, path: string, init?: RequestInit): Promise<Answer> {
  const response = await app.request(`http://127.0.0.1${path}`, init);
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  return { status: response.status, json: isJson ? JSON.parse(text) : {}, text };
}

/** Posts a body. */
export function post(
  app: Hono,
  path: string,
  body: BodyInit = "",
  headers: Record<string, string> = {},
): Promise<Answer> {
  return ask(app, path, { method: "POST", body, headers });
}

/** Checks that an answer refuses in the one form there is, and quotes nothing of what was sent. */
export function expectRefusal(answer: Answer, status: number, code: string, ...secrets: string[]): void {
  expect([answer.status, answer.json.code]).toEqual([status, code]);
  expect(answer.json.error).toMatch(/^(Cannot|The) /);
  for (const secret of secrets) expect(answer.text).not.toContain(secret);
}
