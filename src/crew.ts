/**
 * The queue loops of one worker or one drain, put together, and ended together.
 *
 * @module
 */
import type { Broker, BrokerQueue } from "./broker.ts";
import { Changes } from "./changes.ts";
import { QueueLoop } from "./consume.ts";
import { type BrokerRefusedError, WorkerStoppedError } from "./errors.ts";
import type { Events } from "./events.ts";
import type { LogSink } from "./job.ts";
import { fromMemo } from "./learned.ts";
import { LeaseKeeper } from "./lease_keeper.ts";
import { assertBrokerCan } from "./options.ts";
import type { Platform } from "./platform.ts";
import { settledWithin, withDeadline } from "./requests.ts";
import type { RunLimiter } from "./run_limiter.ts";
import { SoloGate } from "./solo.ts";
import type { QueueStats } from "./stats.ts";
import { Turns } from "./turns.ts";
import type { WorkerQueue } from "./worker.ts";

export interface CrewDeps {
  readonly broker: Broker;
  readonly platform: Platform;
  readonly events: Events;
  readonly log: LogSink | undefined;
  readonly queues: readonly WorkerQueue[];
  readonly limiter?: RunLimiter | undefined;
  /** How long opening may take at most, in milliseconds. */
  readonly openWithinMs?: number | undefined;
  /** Unix milliseconds at which all handlers have to be done, as far as is known by now; `Infinity` for a worker. */
  readonly endsAt: () => number;
  /** Called before each request of a handler. */
  readonly beforeFetch: () => void;
  readonly refused: (error: BrokerRefusedError) => void;
}

/** How long each part of an end may take, in milliseconds. */
export interface EndTimes {
  readonly graceMs: number;
  readonly abortWaitMs: number;
  readonly settleWaitMs: number;
  /** When all of it has to be over, on the platform's clock. Default never. */
  readonly by?: number | undefined;
}

/** How long closing watches and giving back a last claim may take, in milliseconds. */
const CLOSE_WAIT_MS = 1_000;

export class Crew {
  readonly loops: readonly QueueLoop[];
  /** The queues, open, in the order of the loops. */
  readonly queues: readonly BrokerQueue[];
  readonly changes: Changes;
  readonly #platform: Platform;
  readonly #keeper: LeaseKeeper;
  readonly #turns: Turns;

  private constructor(
    platform: Platform,
    keeper: LeaseKeeper,
    turns: Turns,
    changes: Changes,
    queues: readonly BrokerQueue[],
    loops: readonly QueueLoop[],
  ) {
    this.#platform = platform;
    this.#keeper = keeper;
    this.#turns = turns;
    this.changes = changes;
    this.queues = queues;
    this.loops = loops;
  }

  /**
   * Opens the queues, checks each against what the broker can do, and makes their loops. Nothing is claimed yet.
   *
   * @throws whatever opening or checking throws.
   */
  static async open(deps: CrewDeps): Promise<Crew> {
    const { platform, queues } = deps;
    const opened = await Promise.all(queues.map((worker) => openQueue(deps, worker)));
    const keeper = new LeaseKeeper(platform);
    const changes = new Changes();
    const shared = { keeper, changes, gate: new SoloGate(), turns: new Turns(platform) };
    const loops = queues.map(
      (worker, index) => new QueueLoop(loopDeps(deps, worker, opened[index] as BrokerQueue, shared)),
    );
    return new Crew(platform, keeper, shared.turns, changes, opened, loops);
  }

  /** Begins to consume. Resolves when each queue's watch has been tried. */
  async start(): Promise<void> {
    await Promise.all(this.loops.map((loop) => loop.start()));
  }

  /** How many handlers run. */
  get running(): number {
    return this.loops.reduce((sum, loop) => sum + loop.running, 0);
  }

  /** Whether nothing is held and nothing is under way. */
  get quiet(): boolean {
    return this.loops.every((loop) => loop.quiet());
  }

  stats(): QueueStats[] {
    return this.loops.map((loop) => loop.stats());
  }

  /**
   * From now on nothing is claimed and nothing starts, also where this is called from within a handler or a listener; {@linkcode Crew.end} is to follow.
   *
   * @param graceMs how long it will let handlers go on, in milliseconds.
   */
  stopTaking(graceMs: number): void {
    // What goes back unstarted leaves with what is interrupted, where that is to be at once.
    if (graceMs === 0) for (const loop of this.loops) loop.gather();
    for (const loop of this.loops) loop.stopTaking();
  }

  /**
   * Ends all loops: nothing starts any more, what waits goes back, handlers get `graceMs`, then their signal and `abortWaitMs`, after which they are left behind with an attempt charged, and the verdicts get `settleWaitMs`. Bounded by the sum of
   * the three and a second to close, and by `by`, whatever handlers and broker do, but for what handlers compute without a pause. Never rejects.
   */
  async end(why: string, times: EndTimes): Promise<void> {
    const platform = this.#platform;
    let { by = Number.POSITIVE_INFINITY } = times;
    const atMost = (ms: number) => Math.max(0, Math.min(ms, by - platform.now()));
    // What handlers compute beyond the end of a wait is not taken from the waits behind it: what they did is settled all the same.
    const late = (endsAt: number) => {
      by += Math.max(0, platform.now() - endsAt);
    };
    const until = async (ms: number, condition: () => boolean): Promise<boolean> => {
      const endsAt = platform.now() + ms;
      const held = await this.changes.until(platform, ms, condition);
      late(endsAt);
      return held;
    };
    const idle = () => this.running === 0;
    const graceMs = atMost(times.graceMs);
    this.stopTaking(graceMs);
    if (!(await until(graceMs, idle))) {
      const abortedAt = platform.now();
      for (const loop of this.loops) {
        loop.gather();
        loop.abortRunning(new WorkerStoppedError(why));
      }
      late(abortedAt);
      await until(atMost(times.abortWaitMs), idle);
      for (const loop of this.loops) loop.leaveRunning();
    }
    for (const loop of this.loops) loop.flush();
    await until(atMost(times.settleWaitMs), () => this.loops.every((loop) => loop.settled));
    await settledWithin(platform, atMost(CLOSE_WAIT_MS), Promise.all(this.loops.map((loop) => loop.close())));
    this.#keeper.close();
    this.#turns.close();
  }
}

async function openQueue(deps: CrewDeps, worker: WorkerQueue): Promise<BrokerQueue> {
  const { broker, platform, openWithinMs = Number.POSITIVE_INFINITY } = deps;
  const { name } = worker.handler.queue;
  const { settings } = worker.options;
  const queue = broker.queue(name, settings);
  // Opening may take several requests.
  const withinMs = Math.min(settings.requestTimeoutMs * 4, openWithinMs);
  await withDeadline(platform, withinMs, broker.name, "open", queue.open());
  assertBrokerCan(name, worker.options, queue.limits, broker.name);
  return queue;
}

/** What all loops of a crew share. */
interface Shared {
  readonly keeper: LeaseKeeper;
  readonly gate: SoloGate;
  readonly turns: Turns;
  readonly changes: Changes;
}

function loopDeps(
  deps: CrewDeps,
  worker: WorkerQueue,
  queue: BrokerQueue,
  shared: Shared,
): ConstructorParameters<typeof QueueLoop>[0] {
  const { broker, platform, events, limiter, refused, log, endsAt, beforeFetch } = deps;
  const { capabilities } = broker;
  const { timeoutMs, maxAttempts } = worker.options;
  const waits = capabilities.has("waits");
  return {
    platform,
    brokerName: broker.name,
    queue,
    // A claim that waits would keep the verdicts that ride on it waiting too.
    exchanges: capabilities.has("exchange") && !waits,
    waits,
    watches: capabilities.has("wake") && !waits && limiter === undefined,
    worker,
    keeper: shared.keeper,
    gate: shared.gate,
    turns: shared.turns,
    events,
    context: {
      platform,
      queue: worker.handler.queue,
      maxAttempts,
      log,
      deadline: () =>
        timeoutMs === undefined ? endsAt() : Math.min(endsAt(), platform.wallNow() + timeoutMs),
      beforeFetch,
    },
    limiter,
    // A worker lives long enough to learn by itself.
    learned: limiter === undefined ? undefined : fromMemo(queue.memo),
    changed: shared.changes.notify,
    refused,
  };
}
