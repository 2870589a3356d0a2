/**
 * Those who take jobs in a simulated world: workers that come, stop, die and come back, and bounded runs.
 *
 * @module
 */
import { type DrainReport, drain } from "../../src/drain.ts";
import { type RunningWorker, startWorker } from "../../src/start.ts";
import { defineWorker, type WorkerDefinition } from "../../src/worker.ts";
import { simulatedHandler } from "./handlers.ts";
import { SimulatedLink } from "./link.ts";
import { LoopWatch } from "./loop_watch.ts";
import { Machine } from "./machine.ts";
import type { QueueModel } from "./model.ts";
import type { ClockPlan, DrainPlan, EndPlan, LifeEvent, QueuePlan, WorkerPlan } from "./plan.ts";
import { DEDUPE_WINDOW_MS, type World } from "./world.ts";

/** Timers count in whole milliseconds: a sum of waits may take so much longer. */
const ROUNDING_MS = 20;
/** What a stop may take to close, beyond its three waits. */
const CLOSE_MS = 1_000;
/** How long a worker that could not start, or was killed, stays away. */
const RESTART_MS = 500;

export interface Member {
  readonly label: string;
  readonly watches: readonly LoopWatch[];
  /** Whether it is as it will stay. */
  readonly settled: boolean;
  begin(): void;
  died(machine: Machine): void;
  end(): Promise<void>;
}

/** One machine with what belongs to it. */
interface Life {
  readonly machine: Machine;
  readonly watch: LoopWatch;
  readonly link: SimulatedLink;
  readonly definition: WorkerDefinition;
  readonly bornAt: number;
  running: RunningWorker | undefined;
}

class Lives {
  readonly watches: LoopWatch[] = [];
  readonly #world: World;
  readonly #plan: ClockPlan & EndPlan & { readonly queues: readonly number[] };
  readonly #label: string;
  readonly #isDrain: boolean;

  constructor(world: World, plan: WorkerPlan | DrainPlan, label: string, isDrain: boolean) {
    this.#world = world;
    this.#plan = plan;
    this.#label = label;
    this.#isDrain = isDrain;
  }

  next(): Life {
    const world = this.#world;
    const { plan, base, fail, trace, door } = world;
    const machine = new Machine(base, `${this.#label}.${this.watches.length}`, plan.seed, this.#plan);
    const served = this.#plan.queues.map((index) => plan.queues[index] as QueuePlan);
    const queues = new Map(
      served.map((one) => [one.name, { plan: one, model: world.models.get(one.name) as QueueModel }]),
    );
    const watch = new LoopWatch({
      machine,
      queues,
      isDrain: this.#isDrain,
      maxInFlight: plan.maxInFlight,
      fail,
      calm: world.isCalm,
    });
    const link = new SimulatedLink({
      base,
      plan,
      machine,
      owner: this.#label,
      door,
      watch,
      trace,
      fail,
      late: world.late,
    });
    const { graceMs, abortWaitMs, settleWaitMs } = this.#plan;
    const definition = defineWorker({
      queues: served.map((one) => simulatedHandler(one, DEDUPE_WINDOW_MS, world, machine, watch)),
      graceMs,
      abortWaitMs,
      settleWaitMs,
    });
    this.watches.push(watch);
    trace(() => `${machine.label} is there`);
    return { machine, watch, link, definition, bornAt: base.now(), running: undefined };
  }
}

/**
 * After its end a machine holds nothing, not even what handlers left behind still run: where its link was sound meanwhile, and it had the time.
 *
 * @param from when its end began.
 */
function checkNothingHeld(world: World, label: string, { machine, watch }: Life, from: number): void {
  const { plan, base, fail } = world;
  const longest = Math.max(...plan.queues.map((queue) => queue.requestTimeoutMs));
  const concerns = plan.faults.filter(({ whose }) => whose === "all" || whose === label);
  const disturbed = concerns.some(({ fromMs, toMs }) => fromMs < base.now() && toMs > from - longest * 1.1);
  // A claim whose answer was lost long ago may still be unanswered; only where leases can be given back by their ids is that no matter.
  const canGiveBack = !plan.lacks.includes("abandon") || concerns.length === 0;
  if (disturbed || !canGiveBack || machine.pausedBetween(from, base.now()) > 0) return;
  const held = watch.heldInVain();
  if (held.length > 0) fail("heldAfterEnd", `${machine.label} has ended and holds ${held.join(", ")}`);
}

export class WorkerMember implements Member {
  readonly label: string;
  readonly plan: WorkerPlan;
  readonly #world: World;
  readonly #lives: Lives;
  #life: Life | undefined;
  #stopping = false;
  #ending = false;

  constructor(world: World, plan: WorkerPlan, label: string) {
    this.#world = world;
    this.plan = plan;
    this.label = label;
    this.#lives = new Lives(world, plan, label, false);
  }

  get watches(): readonly LoopWatch[] {
    return this.#lives.watches;
  }

  get settled(): boolean {
    const { base, plan } = this.#world;
    const life = this.#life;
    if (base.now() < plan.calmMs || life?.running === undefined || this.#stopping) return false;
    return !life.machine.isPaused && life.watch.isIdle;
  }

  /** Whether it is told of news of a queue. */
  watching(queue: string): boolean {
    return this.#life?.link.isWatching(queue) === true;
  }

  begin(): void {
    const { base } = this.#world;
    base.setTimer(this.plan.startMs, () => this.#boot());
    for (const event of this.plan.events) base.setTimer(event.atMs, () => this.#happens(event));
  }

  died(machine: Machine): void {
    if (this.#life?.machine !== machine) return;
    this.#gone(RESTART_MS);
  }

  async end(): Promise<void> {
    while (this.#life?.running === undefined) await this.#world.base.sleep(50);
    this.#ending = true;
    await this.#stop(this.#life, false);
  }

  #boot(): void {
    const { base, trace } = this.#world;
    if (this.#life !== undefined || this.#ending) return;
    const life = this.#lives.next();
    this.#life = life;
    const { machine, link, definition, watch } = life;
    this.#checkStartBound(life);
    startWorker(definition, { broker: link, platform: machine, on: watch.told }).then(
      (running) => {
        life.running = running;
        running.done.catch((error: unknown) => this.#refused(life, error));
      },
      (error: unknown) => {
        trace(() => `${machine.label} could not start: ${error}`);
        if (error instanceof RangeError) {
          this.#world.fail("threw", `${machine.label} was refused: ${error}`);
        }
        machine.kill();
        if (this.#life === life) {
          this.#life = undefined;
          base.setTimer(RESTART_MS, () => this.#boot());
        }
      },
    );
  }

  /** The broker refused it: it has ended by itself. */
  #refused(life: Life, error: unknown): void {
    this.#world.trace(() => `${life.machine.label} has ended: ${error}`);
    life.watch.ended = true;
    this.#world.base.setTimer(200, () => life.machine.kill());
    if (this.#life === life && !this.#ending) this.#gone(RESTART_MS);
  }

  /** Opening may take four request timeouts, the watch one. */
  #checkStartBound(life: Life): void {
    const { base, plan } = this.#world;
    const timeouts = this.plan.queues.map((index) => (plan.queues[index] as QueuePlan).requestTimeoutMs);
    const bound = Math.ceil(6 * Math.max(...timeouts) * 1.02) + ROUNDING_MS;
    base.setTimer(bound, () => {
      const { machine, bornAt } = life;
      if (!machine.alive || life.running !== undefined || this.#life !== life) return;
      if (machine.pausedBetween(bornAt, base.now()) > 0) return;
      this.#world.fail("startUnbounded", `${machine.label} has not started after ${bound} ms`);
    });
  }

  #happens(event: LifeEvent): void {
    const life = this.#life;
    if (life === undefined || this.#ending) return;
    const { trace } = this.#world;
    trace(() => `${life.machine.label}: ${JSON.stringify(event)}`);
    switch (event.kind) {
      case "crash":
        life.machine.kill();
        this.#gone(event.downMs);
        break;
      case "freeze":
        life.machine.freeze(event.forMs);
        break;
      case "stop":
        if (life.running === undefined || this.#stopping) return;
        // Code of the machine calls it, so a frozen one calls it later.
        life.machine.arrives(0, () => {
          if (this.#life !== life || this.#stopping) return;
          void this.#stop(life, event.twice).then(() => {
            if (this.#life === life) this.#gone(event.downMs);
          });
        });
        break;
    }
  }

  #gone(downMs: number): void {
    this.#life = undefined;
    this.#stopping = false;
    this.#world.base.setTimer(downMs, () => this.#boot());
  }

  async #stop(life: Life, twice: boolean): Promise<void> {
    const { machine, watch } = life;
    const { base, fail, trace } = this.#world;
    const running = life.running as RunningWorker;
    this.#stopping = true;
    watch.stopCalled = true;
    const from = machine.trueNow();
    trace(() => `${machine.label} is asked to stop`);
    const stopped = running.stop();
    if (twice) running.stop().catch(() => {});
    const { graceMs, abortWaitMs, settleWaitMs } = this.plan;
    const bound = Math.ceil((graceMs + abortWaitMs + settleWaitMs + CLOSE_MS) * 1.02) + ROUNDING_MS;
    base.setTimer(machine.lagMs() + bound, () => {
      if (!machine.alive || watch.ended || machine.pausedBetween(from, base.now()) > 0) return;
      fail("stopUnbounded", `${machine.label} has not stopped after ${bound} ms`);
    });
    await stopped;
    trace(() => `${machine.label} has stopped`);
    watch.ended = true;
    if (settleWaitMs >= 2_000) checkNothingHeld(this.#world, this.label, life, from);
    // What it left running can still be seen for a while, then the process is gone.
    base.setTimer(200, () => machine.kill());
  }
}

export class DrainMember implements Member {
  readonly label: string;
  readonly #plan: DrainPlan;
  readonly #world: World;
  readonly #lives: Lives;
  #machine: Machine | undefined;
  settled = false;

  constructor(world: World, plan: DrainPlan, label: string) {
    this.#world = world;
    this.#plan = plan;
    this.label = label;
    this.#lives = new Lives(world, plan, label, true);
  }

  get watches(): readonly LoopWatch[] {
    return this.#lives.watches;
  }

  begin(): void {
    this.#world.base.setTimer(this.#plan.startMs, () => this.#run(this.#lives.next()));
  }

  died(machine: Machine): void {
    if (this.#machine === machine) this.settled = true;
  }

  end(): Promise<void> {
    return Promise.resolve();
  }

  #run(life: Life): void {
    const { machine, link, watch, definition } = life;
    const { maxMs, maxRequests, maxJobs, signalAfterMs, crashAfterMs } = this.#plan;
    const { base, fail, trace } = this.#world;
    this.#machine = machine;
    const aborter = new AbortController();
    if (signalAfterMs !== undefined) {
      machine.setTimer(signalAfterMs, () => {
        trace(() => `${machine.label} is asked to end`);
        if (!watch.ended) watch.stopCalled = true;
        aborter.abort();
      });
    }
    if (crashAfterMs !== undefined) {
      base.setTimer(crashAfterMs, () => {
        machine.kill();
        this.settled = true;
      });
    }
    const from = machine.trueNow();
    const bound = Math.ceil(maxMs * 1.02) + ROUNDING_MS;
    base.setTimer(bound, () => {
      if (!machine.alive || watch.ended || machine.pausedBetween(from, base.now()) > 0) return;
      fail("overBudget", `${machine.label} has not ended after ${bound} ms`);
    });
    const over = (report: DrainReport | undefined) => {
      watch.ended = true;
      this.settled = true;
      const requests = link.requests + machine.fetches;
      if (maxRequests !== undefined && requests > maxRequests) {
        fail("overBudget", `${machine.label} made ${requests} requests; ${maxRequests} is its budget`);
      }
      // A tenth is kept back: on a slow link a short budget has no room for one more round trip.
      if (maxMs >= 40 * this.#world.plan.latencyMs[1]) checkNothingHeld(this.#world, this.label, life, from);
      if (report !== undefined) this.#checkReport(report, watch, link);
      base.setTimer(200, () => machine.kill());
    };
    drain(definition, {
      broker: link,
      platform: machine,
      on: watch.told,
      signal: aborter.signal,
      budget: { maxMs, maxRequests, maxJobs },
    }).then(
      (report) => {
        trace(() => `${machine.label} reports ${JSON.stringify(report)}`);
        over(report);
      },
      (error: unknown) => {
        trace(() => `${machine.label} failed: ${error}`);
        // Some budgets are too small for a single job, and are refused for it.
        const least = /maxRequests is (\d+); give (\d+) or more/.exec(String(error));
        const isTooSmall = least !== null && Number(least[1]) < Number(least[2]);
        if (error instanceof RangeError && !isTooSmall)
          fail("threw", `${machine.label} was refused: ${error}`);
        over(undefined);
      },
    );
  }

  #checkReport(report: DrainReport, watch: LoopWatch, link: SimulatedLink): void {
    const { label } = watch.machine;
    const { maxJobs } = this.#plan;
    const { fail } = this.#world;
    if (maxJobs !== undefined && report.jobs > maxJobs) {
      fail("overBudget", `${label} started ${report.jobs} jobs; ${maxJobs} is its budget`);
    }
    if (report.jobs !== watch.starts)
      fail("wrongReport", `${label} started ${watch.starts}, says ${report.jobs}`);
    const { acked, retried, dead, released, lost } = report;
    const sum = acked + retried + dead + released + lost;
    if (sum !== watch.received)
      fail("wrongReport", `${label} claimed ${watch.received}, accounts for ${sum}`);
    const requests = link.requests + watch.machine.fetches;
    if (report.requests !== requests) {
      fail("wrongReport", `${label} made ${requests} requests, says ${report.requests}`);
    }
  }
}
