/**
 * The handlers of a simulated world: each does what its job's plan says, and records how it ended.
 *
 * @module
 */
import { PermanentError } from "../../src/errors.ts";
import type { Job } from "../../src/job.ts";
import { type QueueHandler, queue } from "../../src/queue.ts";
import type { LoopWatch } from "./loop_watch.ts";
import type { Machine } from "./machine.ts";
import type { Behaviour, JobPlan, QueuePlan } from "./plan.ts";
import type { Ending, RunRecord } from "./run_record.ts";
import type { Fail } from "./violation.ts";

/** A job's body: which job of the plan it is. */
export interface SimBody {
  readonly job: number;
}

/** What handlers need of their world. */
export interface HandlerWorld {
  /** The plan of a job; of a number that the plan does not have, a job that is done at once. */
  planOf(job: number): Pick<JobPlan, "does" | "looks">;
  /** How often a job was started before, over all machines. */
  startsBefore(job: number): number;
  /** The job kills its machine. */
  kill(machine: Machine, job: Job): void;
  readonly trace: (line: () => string) => void;
  /** Whether nothing ever fails here. */
  readonly isCalm: boolean;
  readonly fail: Fail;
  /** Resolves when nothing fails any more. */
  readonly calm: Promise<void>;
}

/** One job's part of a handler's run. */
interface Part {
  readonly job: Job<SimBody>;
  readonly record: RunRecord | undefined;
  readonly does: Behaviour;
  /** How often it was started before. */
  readonly before: number;
  readonly looks: boolean;
}

/** A new one each time: one that all share would remember whoever waits for it for ever. */
const never = () => new Promise<never>(() => {});

/** The queue of a plan with its handler on one machine. */
export function simulatedHandler(
  plan: QueuePlan,
  dedupeWindowMs: number,
  world: HandlerWorld,
  machine: Machine,
  watch: LoopWatch,
): QueueHandler {
  const definition = queue<SimBody>(plan.name, { dedupeWindowMs });
  const [least, most] = plan.pollMs;
  const options = {
    concurrency: plan.concurrency,
    prefetch: plan.prefetch,
    maxAttempts: plan.maxAttempts,
    backoff: { baseMs: plan.backoffMs, maxMs: plan.backoffMs * 4 },
    leaseMs: plan.leaseMs,
    renew: plan.renew,
    requestTimeoutMs: plan.requestTimeoutMs,
    settleWithinMs: plan.settleWithinMs,
    pollMs: { min: least, max: most },
    safetyPollMs: plan.safetyPollMs,
    claimAhead: plan.claimAhead,
    ...(plan.timeoutMs === undefined ? {} : { timeoutMs: plan.timeoutMs }),
  };
  const handle = (jobs: readonly Job<SimBody>[]) => run(jobs, plan, world, machine, watch);
  return plan.batchSize === 1
    ? definition.handle((job) => handle([job]), options)
    : definition.handleBatch(handle, { ...options, batchSize: plan.batchSize });
}

function run(
  jobs: readonly Job<SimBody>[],
  plan: QueuePlan,
  world: HandlerWorld,
  machine: Machine,
  watch: LoopWatch,
): unknown {
  // Code of a machine that has just died is run to the end of its turn by the engine, but nothing of it happened.
  if (!machine.alive) return never();
  const started = watch.started(plan.name, jobs);
  const parts = jobs.map((job): Part => {
    const { does, looks } = world.planOf(job.body.job);
    const record = watch.record(plan.name, job);
    if (looks) record?.look();
    const before = world.startsBefore(job.body.job);
    if (world.isCalm && job.body.job >= 0 && (job.suspect || job.attempt !== before + 1)) {
      const how = `attempt ${job.attempt}${job.suspect ? ", a suspect" : ""}`;
      world.fail("notCalm", `job ${job.id} starts for the ${before + 1}th time as ${how}`);
    }
    return { job, record, does, before, looks };
  });
  const names = jobs.map((job) => `${job.id}/${job.attempt}`).join(" ");
  world.trace(() => `${machine.label} starts ${names}: ${parts.map(({ does }) => JSON.stringify(does))}`);
  const ended = (thrown: unknown) => {
    world.trace(() => `${machine.label} ends ${names}${thrown === undefined ? "" : `: ${thrown}`}`);
    watch.finished(plan.name, started);
    for (const part of parts) part.record?.end(endingOf(part, thrown));
  };
  let result: unknown;
  try {
    result = perform(parts, world, machine);
  } catch (error) {
    ended(error);
    throw error;
  }
  if (!(result instanceof Promise)) {
    ended(undefined);
    return result;
  }
  return result.then(
    () => {
      if (!machine.alive) return never();
      ended(undefined);
      return undefined;
    },
    (error: unknown) => {
      if (!machine.alive) return never();
      ended(error);
      throw error;
    },
  );
}

/** How a job ended by what its handler did: a job's own word comes before what the whole handler did. */
function endingOf(part: Part, thrown: unknown): Ending {
  const { does, before } = part;
  if (does.kind === "deadLetters" && said.has(part.job)) return "dead";
  if (does.kind === "retries" && before < does.times && said.has(part.job)) return "retry";
  if (thrown === undefined) return "returned";
  return thrown instanceof PermanentError ? "permanent" : "threw";
}

/** Jobs that called `retry` or `deadLetter`. */
const said = new WeakSet<Job>();

/** Does what the plans of the jobs say; returns without a promise where none needs time. */
function perform(parts: readonly Part[], world: HandlerWorld, machine: Machine): unknown {
  for (const { does } of parts) if (does.kind === "computes") machine.compute(does.ms);
  const waits = parts.map((part) => waitOf(part, world, machine)).filter((wait) => wait !== undefined);
  if (waits.length === 0) return finish(parts, world, machine);
  return Promise.all(waits).then(() => (machine.alive ? finish(parts, world, machine) : never()));
}

function finish(parts: readonly Part[], world: HandlerWorld, machine: Machine): unknown {
  let thrown: Error | undefined;
  for (const { job, does, before } of parts) {
    switch (does.kind) {
      case "kills":
        if (before < does.times) {
          world.kill(machine, job);
          return never();
        }
        break;
      case "throws":
        if (does.permanent) thrown ??= new PermanentError("this job never will");
        else if (before < does.times) thrown ??= new Error("not this time");
        break;
      case "retries":
        if (before < does.times) {
          job.retry(does.delayMs === undefined ? {} : { delayMs: does.delayMs });
          said.add(job);
        }
        break;
      case "deadLetters":
        job.deadLetter("as planned");
        said.add(job);
        break;
    }
  }
  if (thrown !== undefined) throw thrown;
  return undefined;
}

function waitOf(part: Part, world: HandlerWorld, machine: Machine): Promise<unknown> | undefined {
  const { does, before, job } = part;
  switch (does.kind) {
    case "instant":
    case "computes":
      return undefined;
    case "works":
      return does.heeds ? sleepHeeding(machine, does.ms, part) : sleep(machine, does.ms);
    case "hangs":
      if (before >= does.times) return undefined;
      return Promise.race([sleepHeeding(machine, Number.POSITIVE_INFINITY, part), world.calm]);
    case "fetches":
      return fetches(job, does.requests, does.ms, machine);
    default:
      return does.ms > 0 ? sleep(machine, does.ms) : undefined;
  }
}

async function fetches(job: Job, requests: number, ms: number, machine: Machine): Promise<void> {
  for (let made = 0; made < requests; made += 1) await job.fetch("https://receiver.example/");
  await sleep(machine, ms);
}

function sleep(machine: Machine, ms: number): Promise<void> {
  return new Promise((resolve) => {
    machine.setTimer(ms, resolve);
  });
}

/** Sleeps, but rejects with the signal's reason once it is aborted. */
function sleepHeeding(machine: Machine, ms: number, part: Part): Promise<void> {
  return new Promise((resolve, reject) => {
    const signal = part.record?.look() ?? part.job.signal;
    const stop = () => reject(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop);
    if (ms !== Number.POSITIVE_INFINITY) machine.setTimer(ms, resolve);
  });
}
