/**
 * Plays one world: workers, drains and a producer on machines of their own, one broker, everything by the plan; and after the faults, the
 * calm in which all must come to an end.
 *
 * @module
 */
import { MemoryBroker } from "../../adapters/memory.ts";
import { SimulatedPlatform } from "../../runtimes/simulated.ts";
import type { Broker } from "../../src/broker.ts";
import type { Job } from "../../src/job.ts";
import { Door, type Tamper } from "./door.ts";
import type { HandlerWorld, SimBody } from "./handlers.ts";
import type { LoopWatch } from "./loop_watch.ts";
import type { Machine } from "./machine.ts";
import { DrainMember, type Member, WorkerMember } from "./members.ts";
import { QueueModel } from "./model.ts";
import type { JobView } from "./model_views.ts";
import type { JobPlan, Plan, QueuePlan, TendingPlan } from "./plan.ts";
import { Production } from "./production.ts";
import { type Promised, Violation } from "./violation.ts";

/** An id chosen by the caller keeps a second job out for longer than any world lasts. */
export const DEDUPE_WINDOW_MS = 86_400_000;
/** How long a world may wait for jobs to come, after the probe. */
const MOST_IDLE_MS = 3_000;
/** A request that fails may take a timeout to do so, and is followed by a pause. */
const MOST_PAUSE_MS = 10_000 + 10_000;

export interface PlayOptions {
  /** Hears what happens, line by line. */
  readonly trace?: ((line: string) => void) | undefined;
  readonly tamper?: Tamper | undefined;
  /** The engine, on this clock. By default the memory broker. */
  readonly engine?: ((base: SimulatedPlatform) => Broker) | undefined;
}

/** What came of a world. */
export interface Played {
  readonly violation: Violation | undefined;
  /** Simulated time it took. */
  readonly ms: number;
  readonly jobs: number;
  readonly starts: number;
  readonly requests: number;
  /** How often what happened at the broker. */
  readonly tally: Readonly<Record<string, number>>;
}

export class World implements HandlerWorld {
  readonly base = new SimulatedPlatform();
  readonly plan: Plan;
  readonly door: Door;
  readonly models = new Map<string, QueueModel>();
  readonly calm: Promise<void>;
  readonly members: Member[];
  /** Messages under way that faults made late: what they do is not over with the faults. */
  readonly late = { count: 0 };
  /** Whether nothing ever fails here, so that more can be asked. */
  readonly isCalm: boolean;
  readonly #trace: ((line: string) => void) | undefined;
  readonly #starts = new Map<number, number>();
  readonly #failed: Promise<never>;
  #reject!: (violation: Violation) => void;
  #violation: Violation | undefined;

  constructor(plan: Plan, options: PlayOptions) {
    this.plan = plan;
    this.#trace = options.trace;
    this.isCalm = plan.calmMs === 0 && plan.drains.length === 0;
    this.#failed = new Promise((_, reject) => {
      this.#reject = reject;
    });
    this.#failed.catch(() => {});
    const { base } = this;
    for (const queue of plan.queues) {
      this.models.set(
        queue.name,
        new QueueModel(queue.name, queue.leaseMs, DEDUPE_WINDOW_MS, this.fail, () => {}),
      );
    }
    const engine =
      options.engine?.(base) ?? new MemoryBroker({ now: () => base.now(), wallNow: () => base.wallNow() });
    this.door = new Door(engine, base, this.models, options.tamper);
    this.calm = base.sleep(plan.calmMs);
    this.members = [
      ...plan.workers.map((one, index) => new WorkerMember(this, one, `worker${index}`)),
      ...plan.drains.map((one, index) => new DrainMember(this, one, `drain${index}`)),
    ];
  }

  readonly fail = (promised: Promised, what: string): void => {
    if (this.#violation !== undefined) return;
    this.#violation = new Violation(promised, this.base.now(), what);
    this.trace(() => `VIOLATION ${this.#violation?.message}`);
    this.#reject(this.#violation);
  };

  readonly trace = (line: () => string): void => {
    this.#trace?.(`${this.base.now().toFixed(0).padStart(7)}  ${line()}`);
  };

  planOf(job: number): Pick<JobPlan, "does" | "looks"> {
    return this.plan.jobs[job] ?? { does: { kind: "instant" }, looks: true };
  }

  startsBefore(job: number): number {
    const before = this.#starts.get(job) ?? 0;
    this.#starts.set(job, before + 1);
    return before;
  }

  kill(machine: Machine, job: Job): void {
    const now = machine.trueNow();
    this.trace(() => `${machine.label} is killed by job ${job.id}`);
    for (const queue of this.plan.queues) {
      for (const other of (this.models.get(queue.name) as QueueModel).heldBy(machine.label, now)) {
        if (this.#watchOf(machine)?.mayCome(queue.name, other, job) !== true) {
          this.#checkNeighbour(machine, job, queue, other);
        }
      }
    }
    machine.kill();
    for (const member of this.members) member.died(machine);
  }

  async play(): Promise<Played> {
    const production = new Production(this);
    const script = async () => {
      for (const member of this.members) member.begin();
      const tended = Promise.all(this.plan.tending.map((one) => this.#tend(one)));
      await production.all();
      await tended;
      await this.#untilDone();
      await this.#probe(production);
      await this.#end();
    };
    try {
      await this.base.run(Promise.race([this.#failed, script()]), 24 * 3_600_000);
    } catch (error) {
      if (!(error instanceof Violation)) this.#blame(error);
    }
    const watches = this.members.flatMap((member) => member.watches);
    const violation = this.#violation;
    return {
      violation,
      ms: this.base.now(),
      jobs: this.plan.jobs.length,
      starts: watches.reduce((sum, one) => sum + one.starts, 0),
      requests: watches.reduce((sum, one) => sum + one.requests, 0),
      tally: this.#tally(),
    };
  }

  async #tend(tending: TendingPlan): Promise<void> {
    await this.base.sleep(tending.atMs);
    this.trace(() => `somebody does ${JSON.stringify(tending)}`);
    const queue = await this.doorQueue(this.plan.queues[tending.queue] as QueuePlan);
    if (tending.kind === "redrive") return queue.redrive();
    await queue.setPaused(true);
    await this.base.sleep(tending.forMs);
    await queue.setPaused(false);
  }

  /** The engine's queue, open, past every link. */
  async doorQueue({ name, leaseMs }: QueuePlan): Promise<ReturnType<Door["queue"]>> {
    const settings = { leaseMs, requestTimeoutMs: 1_000, dedupeWindowMs: DEDUPE_WINDOW_MS };
    const queue = this.door.queue(name, settings);
    await queue.open();
    return queue;
  }

  /** Jobs in the broker that are neither acked nor dead. */
  get open(): number {
    let open = 0;
    for (const model of this.models.values()) open += model.open;
    return open;
  }

  #tally(): Record<string, number> {
    const sum: Record<string, number> = {};
    for (const { tally } of this.models.values()) {
      for (const [what, count] of tally) sum[what] = (sum[what] ?? 0) + count;
    }
    return sum;
  }

  #watchOf(machine: Machine): LoopWatch | undefined {
    return this.members.flatMap((member) => member.watches).find((watch) => watch.machine === machine);
  }

  #blame(error: unknown): void {
    const text = error instanceof Error ? error.message : String(error);
    this.fail(text.includes("round in a circle") ? "livelock" : "threw", text);
  }

  #checkNeighbour(machine: Machine, killer: Job, queue: QueuePlan, other: JobView): void {
    if (other.id === killer.id && killer.queue === queue.name) return;
    // A job that had failed by itself before its last attempt is the gap that is said.
    if (!other.suspect || other.charged !== queue.maxAttempts) return;
    // One that kills, too, is no innocent.
    if (this.planOf(jobNumber(other.body)).does.kind === "kills") return;
    this.fail(
      "tookNeighbour",
      `job ${killer.id} took ${other.id} along, held by ${machine.label} as its last chance`,
    );
  }

  async #untilDone(): Promise<void> {
    await this.calm;
    const from = this.base.now();
    const bound = this.#boundMs();
    for (;;) {
      if (this.open === 0 && this.late.count === 0 && this.members.every((member) => member.settled)) return;
      if (this.base.now() - from > bound) {
        const left = [...this.models.values()].flatMap((model) =>
          [...model.jobs.values()].filter((job) => job.state !== "acked" && job.state !== "dead"),
        );
        const which = left.slice(0, 3).map((job) => `${job.id} ${job.state}, attempt ${job.charged}`);
        const waitsFor = this.members.filter((member) => !member.settled).map((member) => member.label);
        return this.fail(
          "noProgress",
          `${bound} ms after the faults: ${which.join("; ")} ${waitsFor.join(" ")}`,
        );
      }
      await this.base.sleep(this.base.now() - from > 5_000 ? 50 : 5);
    }
  }

  /** How long all may take once nothing fails: every attempt after the other, each after its lease. */
  #boundMs(): number {
    const { queues, jobs, workers, tending } = this.plan;
    const rounds = tending.some((one) => one.kind === "redrive") ? 3 : 1;
    const down = 3_000 + Math.max(...workers.flatMap((one) => one.events.map((event) => event.atMs)), 0);
    let bound = 45_000 + down;
    for (const job of jobs) {
      const queue = queues[job.queue] as QueuePlan;
      const each =
        (job.does.kind === "kills" ? queue.leaseMs + 3_000 : 0) + ("ms" in job.does ? job.does.ms : 0);
      const pause = (job.does.kind === "retries" ? (job.does.delayMs ?? 0) : 0) + queue.backoffMs * 4;
      bound += rounds * queue.maxAttempts * (each + pause + queue.pollMs[1] + 500) + job.delayMs;
    }
    return bound + 3 * Math.max(...queues.map((queue) => queue.leaseMs + queue.safetyPollMs));
  }

  /** A job comes while all is idle: it must start soon. */
  async #probe(production: Production): Promise<void> {
    for (const [index, queue] of this.plan.queues.entries()) {
      await this.base.sleep(production.dice.pick([0, 1, 10, 100, MOST_IDLE_MS]));
      const workers = this.members.filter(
        (one) => one instanceof WorkerMember && one.plan.queues.includes(index),
      );
      const watching = workers.some((member) => (member as WorkerMember).watching(queue.name));
      const trip = 4 * this.plan.latencyMs[1] + 500;
      const from = this.base.now();
      // A worker whose request failed just before the calm holds back for so long.
      const pauseMs =
        this.plan.faults.length === 0 ? 0 : Math.max(0, this.plan.calmMs + MOST_PAUSE_MS - from);
      const soonMs = (watching || this.plan.waits ? trip : queue.pollMs[1] + trip) + pauseMs;
      await production.probe(queue, index);
      while (this.open > 0) {
        if (this.base.now() - from > soonMs) {
          return this.fail("slowStart", `a job for idle ${queue.name} was not done within ${soonMs} ms`);
        }
        await this.base.sleep(5);
      }
    }
  }

  async #end(): Promise<void> {
    await Promise.all(this.members.map((member) => member.end()));
    for (const member of this.members) for (const watch of member.watches) watch.checkRuns();
    for (const queue of this.plan.queues) {
      const model = this.models.get(queue.name) as QueueModel;
      const { ready, delayed, held, dead } = await (await this.doorQueue(queue)).sizes();
      if (held > 0) this.fail("heldAtEnd", `${held} jobs of ${queue.name} are held`);
      if (ready + delayed > 0) this.fail("lostJob", `${ready + delayed} jobs of ${queue.name} are left`);
      if (dead !== model.count("dead"))
        this.fail("deadUnjustly", `${dead} dead letters, ${model.count("dead")} expected`);
      for (const job of model.jobs.values()) this.#checkEnd(queue, job);
    }
  }

  /** Where nothing fails, a job that only has to run, by itself, is acked. */
  #checkEnd(queue: QueuePlan, { id, body, state, reason }: JobView): void {
    const { does } = this.planOf(jobNumber(body));
    if (!this.isCalm || queue.batchSize > 1 || does.kind !== "instant") return;
    if (state !== "acked") this.fail("deadUnjustly", `job ${id} is dead although nothing fails: ${reason}`);
  }
}

/** The number of a job in the plan. */
function jobNumber(body: JobView["body"]): number {
  return (JSON.parse(String(body)) as SimBody).job;
}

let strays: unknown[] | undefined;

function watchStrays(): unknown[] {
  if (strays === undefined) {
    const seen: unknown[] = [];
    strays = seen;
    process.on("unhandledRejection", (reason) => seen.push(reason));
  }
  return strays;
}

/** Plays the world of a plan. Never rejects: what went wrong is in what it answers. */
export async function play(plan: Plan, options: PlayOptions = {}): Promise<Played> {
  const seen = watchStrays();
  const world = new World(plan, options);
  const played = await world.play();
  // Rejections are reported once the microtasks are done.
  await new Promise((resolve) => setImmediate(resolve));
  const stray = seen.splice(0)[0];
  if (stray === undefined || played.violation !== undefined) return played;
  const text = stray instanceof Error ? (stray.stack ?? stray.message) : String(stray);
  return { ...played, violation: new Violation("unhandledRejection", played.ms, text) };
}
