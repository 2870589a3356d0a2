/**
 * Drains in a simulated world, checked for what holds of each.
 *
 * @module
 */
import { expect } from "bun:test";
import { type DrainDeps, type DrainReport, drain } from "../../src/drain.ts";
import type { Job } from "../../src/job.ts";
import type { HandlerOptions, WorkerOptions } from "../../src/options.ts";
import { queue } from "../../src/queue.ts";
import { defineWorker } from "../../src/worker.ts";
import type { World } from "./world.ts";

export type Handle = (job: Job<unknown>) => unknown;

/** A worker of one queue. */
export function define(handler: Handle, options: HandlerOptions = {}, worker: WorkerOptions = {}) {
  return defineWorker({ queues: [queue("work").handle(handler, options)], ...worker });
}

/** Drains and checks what holds of every report. */
export async function drained(
  world: World,
  definition: ReturnType<typeof define>,
  deps: Partial<DrainDeps> = {},
): Promise<DrainReport> {
  const { broker } = world;
  const before = broker.requests;
  const started = world.told("started").length;
  const left = world.told("abandoned").length;
  const claimed = () => world.told("claimed").reduce((sum, { got }) => sum + got, 0);
  const claimedBefore = claimed();
  const from = world.platform.now();
  const report = await world.platform.run(
    drain(definition, { broker, platform: world.platform, on: world.on, ...deps }),
  );
  const fetches = report.requests - (broker.requests - before);
  expect(fetches).toBeGreaterThanOrEqual(0);
  expect(report.jobs).toBe(world.told("started").length - started);
  // Whatever was claimed is accounted for, once.
  const { acked, retried, dead, released, lost } = report;
  expect(acked + retried + dead + released + lost).toBe(claimed() - claimedBefore);
  expect(report.abandoned).toBe(world.told("abandoned").length - left);
  expect(report.ms).toBeLessThanOrEqual(world.platform.now() - from);
  const { maxRequests = Number.POSITIVE_INFINITY, maxMs = Number.POSITIVE_INFINITY } = deps.budget ?? {};
  expect(report.requests).toBeLessThanOrEqual(maxRequests);
  expect(world.platform.now() - from).toBeLessThanOrEqual(maxMs);
  await world.platform.pass(0);
  return report;
}
