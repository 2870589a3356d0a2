/**
 * Makes a failing plan smaller: leaves out jobs, workers, faults and the rest one after the other, as long as the same promise is broken.
 *
 * @module
 */
import type { Plan, QueuePlan, WorkerPlan } from "./plan.ts";
import type { Promised } from "./violation.ts";
import { type Played, play } from "./world.ts";

/** Enough for most; each costs as much as one world. */
const MOST_PLAYS = 1_500;

/** The smallest plan found that breaks the same promise. */
export async function shrink(
  plan: Plan,
  promised: Promised,
  playing: (plan: Plan) => Promise<Played> = play,
): Promise<Plan> {
  let smallest = plan;
  let plays = 0;
  for (let again = true; again && plays < MOST_PLAYS; ) {
    again = false;
    for (const smaller of smallerPlans(smallest)) {
      plays += 1;
      if (plays >= MOST_PLAYS) break;
      if ((await playing(smaller)).violation?.promised !== promised) continue;
      smallest = smaller;
      again = true;
      break;
    }
  }
  return smallest;
}

/** Plans with one thing less, the greatest steps first. */
function* smallerPlans(plan: Plan): Generator<Plan> {
  yield* halves(plan, "jobs");
  yield* without(plan, "drains");
  yield* without(plan, "workers");
  yield* without(plan, "faults");
  yield* without(plan, "tending");
  if (plan.queues.length > 1) yield* oneQueue(plan);
  yield* without(plan, "jobs");
  for (const [index, worker] of plan.workers.entries()) {
    for (const one of simplerWorkers(worker)) yield { ...plan, workers: replaced(plan.workers, index, one) };
  }
  for (const [index, queue] of plan.queues.entries()) {
    for (const one of simplerQueues(queue)) yield { ...plan, queues: replaced(plan.queues, index, one) };
  }
  for (const [index, job] of plan.jobs.entries()) {
    const change = (part: Partial<typeof job>) => ({
      ...plan,
      jobs: replaced(plan.jobs, index, { ...job, ...part }),
    });
    if (job.does.kind !== "instant") yield change({ does: { kind: "instant" } });
    if (job.atMs > 0) yield change({ atMs: 0 });
    if (job.delayMs > 0) yield change({ delayMs: 0 });
    if (job.priority !== "normal") yield change({ priority: "normal" });
    if (job.againAfterMs !== undefined) yield change({ againAfterMs: undefined });
  }
  for (const [index, fault] of plan.faults.entries()) {
    if (fault.chance < 1) yield { ...plan, faults: replaced(plan.faults, index, { ...fault, chance: 1 }) };
  }
  for (const lack of plan.lacks) yield { ...plan, lacks: plan.lacks.filter((one) => one !== lack) };
  if (plan.waits) yield { ...plan, waits: false };
  if (plan.maxInFlight > 0) yield { ...plan, maxInFlight: 0 };
  if (plan.latencyMs[1] > 0) yield { ...plan, latencyMs: [0, 0] };
  if (plan.calmMs > 500) yield { ...plan, calmMs: Math.floor(plan.calmMs / 2) };
}

type Lists = "jobs" | "drains" | "workers" | "faults" | "tending";

function* halves(plan: Plan, list: Lists): Generator<Plan> {
  const { length } = plan[list];
  if (length < 4) return;
  yield { ...plan, [list]: plan[list].slice(0, length / 2) };
  yield { ...plan, [list]: plan[list].slice(length / 2) };
}

function* without(plan: Plan, list: Lists): Generator<Plan> {
  // The first worker is the one that serves all queues.
  const least = list === "workers" ? 1 : 0;
  for (let index = plan[list].length - 1; index >= least; index -= 1) {
    yield { ...plan, [list]: (plan[list] as readonly unknown[]).filter((_, other) => other !== index) };
  }
}

function* oneQueue(plan: Plan): Generator<Plan> {
  for (const [index, queue] of plan.queues.entries()) {
    const only = <T extends { readonly queues: readonly number[] }>(member: T): T => ({
      ...member,
      queues: [0],
    });
    yield {
      ...plan,
      queues: [queue],
      workers: plan.workers.map(only),
      drains: plan.drains.map(only),
      tending: plan.tending.filter((one) => one.queue === index).map((one) => ({ ...one, queue: 0 })),
      jobs: plan.jobs.filter((job) => job.queue === index).map((job) => ({ ...job, queue: 0 })),
    };
  }
}

function* simplerWorkers(worker: WorkerPlan): Generator<WorkerPlan> {
  for (const event of worker.events)
    yield { ...worker, events: worker.events.filter((one) => one !== event) };
  if (worker.skewMs !== 0 || worker.driftPpm !== 0) yield { ...worker, skewMs: 0, driftPpm: 0 };
  if (worker.early > 0) yield { ...worker, early: 0 };
  if (worker.startMs > 0) yield { ...worker, startMs: 0 };
}

function* simplerQueues(queue: QueuePlan): Generator<QueuePlan> {
  if (queue.batchSize > 1) yield { ...queue, batchSize: 1 };
  if (queue.concurrency > 1) yield { ...queue, concurrency: 1 };
  if (queue.prefetch !== 1 && queue.batchSize === 1) yield { ...queue, prefetch: 1 };
  if (queue.timeoutMs !== undefined) yield { ...queue, timeoutMs: undefined };
  if (queue.claimAhead) yield { ...queue, claimAhead: false };
  if (queue.settleWithinMs > 0) yield { ...queue, settleWithinMs: 0 };
}

function replaced<T>(list: readonly T[], at: number, by: T): T[] {
  return list.map((one, index) => (index === at ? by : one));
}
