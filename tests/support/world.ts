/**
 * A simulated world for unit tests: a virtual clock, the memory broker behind a faulty link, workers on it, and a record of all they told.
 *
 * @module
 */
import { afterEach, expect } from "bun:test";
import { type SimulatedOptions, SimulatedPlatform } from "../../runtimes/simulated.ts";
import type { BrokerQueue, NewJob, PeekedJob, QueueSizes } from "../../src/broker.ts";
import type { EddyEvent } from "../../src/events.ts";
import type { Job } from "../../src/job.ts";
import type { HandlerOptions, WorkerOptions } from "../../src/options.ts";
import { type Handler, queue } from "../../src/queue.ts";
import { type RunningWorker, startWorker } from "../../src/start.ts";
import { defineWorker, type WorkerDefinition } from "../../src/worker.ts";
import { type Asked, FaultyBroker, type FaultyOptions } from "./faulty_broker.ts";

const strays: unknown[] = [];
let watching = false;

/** Has every test of the file fail that leaves a rejected promise alone. */
export function noStrayRejections(): void {
  if (!watching) {
    watching = true;
    process.on("unhandledRejection", (reason) => strays.push(reason));
  }
  afterEach(async () => {
    // Rejections are reported once the microtasks are done.
    await new Promise((resolve) => setImmediate(resolve));
    expect(strays.splice(0)).toEqual([]);
  });
}

export interface WorldOptions extends Omit<FaultyOptions, "platform"> {
  readonly simulated?: SimulatedOptions;
}

export type EventOf<T extends EddyEvent["type"]> = Extract<EddyEvent, { type: T }>;

export class World {
  readonly platform: SimulatedPlatform;
  readonly broker: FaultyBroker;
  readonly events: EddyEvent[] = [];
  /** When each event came, in the platform's milliseconds. */
  readonly eventTimes: number[] = [];
  #ids = 0;

  constructor(options: WorldOptions = {}) {
    const { simulated, ...faulty } = options;
    this.platform = new SimulatedPlatform(simulated);
    this.broker = new FaultyBroker({ platform: this.platform, ...faulty });
  }

  readonly on = (event: EddyEvent): void => {
    this.events.push(event);
    this.eventTimes.push(this.platform.now());
  };

  /** A direct line to the engine's queue, past the link. */
  engineQueue(name = "work", leaseMs = 30_000): BrokerQueue {
    return this.broker.engine.queue(name, { leaseMs, requestTimeoutMs: 1_000, dedupeWindowMs: 600_000 });
  }

  /** Puts jobs into the engine, past the link. Ids are `prefix0`, `prefix1`, … unless given. */
  async add(count: number, job: Partial<NewJob> = {}, name = "work", prefix = "job"): Promise<string[]> {
    const jobs = Array.from({ length: count }, () => {
      const id = `${prefix}${this.#ids}`;
      this.#ids += 1;
      return {
        id,
        body: "null",
        headers: {},
        priority: "normal" as const,
        delayMs: 0,
        dedupe: false,
        ...job,
      };
    });
    for (let from = 0; from < jobs.length; from += 1_000) {
      await this.engineQueue(name).enqueue(
        `request-${prefix}-${this.#ids}-${from}`,
        jobs.slice(from, from + 1_000),
      );
    }
    return jobs.map((one) => one.id);
  }

  /** Starts a worker of one queue. */
  start(
    handler: Handler<unknown>,
    options: HandlerOptions = {},
    worker: WorkerOptions = {},
    name = "work",
  ): Promise<RunningWorker> {
    return this.startDefinition(defineWorker({ queues: [queue(name).handle(handler, options)], ...worker }));
  }

  startDefinition(definition: WorkerDefinition, broker: FaultyBroker = this.broker): Promise<RunningWorker> {
    return this.platform.run(startWorker(definition, { broker, platform: this.platform, on: this.on }));
  }

  /** A handler that takes so long, in simulated milliseconds, and notes what it ran. */
  takes(ms: number, ran: string[] = []): (job: Job<unknown>) => Promise<void> {
    return async (job) => {
      ran.push(job.id);
      await this.platform.sleep(ms);
    };
  }

  sizes(name = "work"): Promise<QueueSizes> {
    return (this.engineQueue(name).sizes as NonNullable<BrokerQueue["sizes"]>)();
  }

  peek(state: PeekedJob["state"], name = "work"): Promise<readonly PeekedJob[]> {
    return (this.engineQueue(name).peek as NonNullable<BrokerQueue["peek"]>)(state, 10_000);
  }

  /** All events of a type. */
  told<T extends EddyEvent["type"]>(type: T): EventOf<T>[] {
    return this.events.filter((event): event is EventOf<T> => event.type === type);
  }

  /** Plays until the condition holds. */
  async until(condition: () => boolean, maxMs = 3_600_000): Promise<void> {
    const end = this.platform.now() + maxMs;
    while (!condition()) {
      if (this.platform.now() > end) throw new Error(`waited ${maxMs} ms in vain`);
      await this.platform.pass(1);
    }
  }

  /** Plays until the queue holds nothing but dead letters. */
  async untilEmpty(name = "work", maxMs = 3_600_000): Promise<void> {
    const end = this.platform.now() + maxMs;
    for (;;) {
      const { ready, delayed, held } = await this.sizes(name);
      if (ready + delayed + held === 0) return;
      if (this.platform.now() > end) {
        throw new Error(`after ${maxMs} ms: ${ready} ready, ${delayed} delayed, ${held} held`);
      }
      await this.platform.pass(5);
    }
  }
}

/** Fails unless each claim was answered before another was sent, but for the same one sent again. */
export function expectNoOverlap(claims: readonly Asked[]): void {
  for (const [index, claim] of claims.entries()) {
    const before = claims[index - 1];
    if (before === undefined || before.claim?.leaseId === claim.claim?.leaseId) continue;
    expect(before.answeredAt).toBeDefined();
    expect(claim.at).toBeGreaterThanOrEqual(before.answeredAt as number);
  }
}
