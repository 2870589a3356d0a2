/**
 * Makes the plan of a world from a seed.
 *
 * @module
 */
import type { Capability } from "../../src/broker.ts";
import { Dice } from "./dice.ts";
import { faultPlans, tendingPlans, withEpisode } from "./generate_faults.ts";
import type {
  Behaviour,
  ClockPlan,
  DrainPlan,
  EndPlan,
  JobPlan,
  LifeEvent,
  Plan,
  QueuePlan,
  WorkerPlan,
} from "./plan.ts";

const LEASES_MS = [1_000, 1_000, 1_500, 2_000, 3_000, 5_000, 10_000, 30_000] as const;

/** The plan of a seed. */
export function generatePlan(seed: number): Plan {
  const dice = new Dice(seed, "plan");
  // Some worlds are without any fault: there, more can be asked of the loop.
  const calm = dice.chance(0.12);
  const calmMs = calm ? 0 : dice.pick([2_000, 5_000, 10_000, 20_000]);
  const waits = dice.chance(0.12);
  const latencyMs = dice.pick([
    [0, 0],
    [0, 3],
    [1, 8],
    [5, 40],
    [20, 20],
    [30, 90],
  ] as const);
  const queues = Array.from({ length: dice.chance(0.3) ? 2 : 1 }, (_, index) =>
    queuePlan(dice, `q${index}`, latencyMs[1], calm),
  );
  const lacks = lacking(dice);
  const workers = Array.from(
    {
      length: dice.weighted([
        [4, 1],
        [4, 2],
        [2, 3],
      ] as const),
    },
    (_, index) => workerPlan(dice, queues, calmMs, calm, index),
  );
  const drains = Array.from(
    {
      length: dice.weighted([
        [6, 0],
        [3, 1],
        [1, 2],
      ] as const),
    },
    () => drainPlan(dice, queues, calmMs, calm),
  );
  const jobs = jobPlans(dice, queues, calmMs, calm, drains.length > 0);
  const plan: Plan = {
    seed,
    lacks,
    waits,
    maxInFlight: dice.chance(0.1) ? dice.whole(6, 10) : 0,
    latencyMs,
    calmMs,
    queues,
    workers,
    drains,
    jobs,
    tending: calm ? [] : tendingPlans(dice, queues.length, calmMs),
    faults: calm ? [] : faultPlans(dice, calmMs, workers.length, drains.length, queues),
  };
  return fitting(calm ? plan : withEpisode(dice, plan));
}

function lacking(dice: Dice): Capability[] {
  const lacks: Capability[] = [];
  if (dice.chance(0.3)) lacks.push("exchange");
  if (dice.chance(0.35)) lacks.push("wake");
  if (dice.chance(0.2)) lacks.push("abandon");
  if (dice.chance(0.1)) lacks.push("sizes");
  return lacks;
}

function queuePlan(dice: Dice, name: string, latencyMs: number, calm: boolean): QueuePlan {
  const leaseMs = dice.pick(LEASES_MS);
  const most = Math.floor((leaseMs * (2 / 3) - Math.min(1_000, leaseMs / 20)) / 2) - 2;
  const requestTimeoutMs = Math.min(
    most,
    Math.max(latencyMs * 2 + 30, dice.pick([50, 150, 500, 2_000, most])),
  );
  const renew = calm || dice.chance(0.88);
  const maxAttempts = dice.whole(2, 5);
  const batchSize = renew && dice.chance(0.2) ? dice.whole(2, 5) : 1;
  const prefetch = !renew
    ? 1
    : dice.weighted<number | "auto">([
        [4, "auto"],
        [2, 1],
        [4, dice.whole(2, 8)],
      ]);
  const timeouts = renew ? [300, 1_000, 4_000] : [Math.max(50, leaseMs - requestTimeoutMs - 100)];
  const pollMs = dice.pick([
    [20, 200],
    [50, 1_000],
    [50, 5_000],
  ] as const);
  return {
    name,
    leaseMs,
    requestTimeoutMs,
    renew,
    concurrency: dice.weighted([
      [5, 1],
      [3, 2],
      [1, 3],
      [1, 4],
    ] as const),
    prefetch,
    batchSize: prefetch === 1 ? 1 : batchSize,
    maxAttempts,
    timeoutMs: dice.chance(0.25) ? dice.pick(timeouts) : undefined,
    settleWithinMs: dice.pick([0, 50, 250]),
    claimAhead: dice.chance(0.8),
    backoffMs: dice.pick([0, 20, 200]),
    pollMs,
    safetyPollMs: dice.pick([5_000, 30_000]),
  };
}

function clockPlan(dice: Dice): ClockPlan {
  return {
    skewMs: dice.chance(0.3) ? 0 : dice.whole(-1_000_000, 1_000_000),
    driftPpm: dice.chance(0.4) ? 0 : dice.whole(-10_000, 10_000),
    early: dice.chance(0.1) ? 0.03 : 0,
  };
}

function endPlan(dice: Dice): EndPlan {
  return {
    graceMs: dice.pick([0, 100, 1_000, 3_000]),
    abortWaitMs: dice.pick([0, 100, 1_000]),
    settleWaitMs: dice.pick([500, 2_000, 5_000]),
  };
}

function workerPlan(
  dice: Dice,
  queues: readonly QueuePlan[],
  calmMs: number,
  calm: boolean,
  index: number,
): WorkerPlan {
  const all = queues.map((_, queue) => queue);
  const count = calm
    ? 0
    : dice.weighted([
        [4, 0],
        [3, 1],
        [2, 2],
        [1, 3],
      ] as const);
  const events = Array.from({ length: count }, () => lifeEvent(dice, calmMs));
  return {
    ...(calm
      ? { skewMs: dice.whole(-1_000, 1_000), driftPpm: dice.whole(-9_000, 9_000), early: 0 }
      : clockPlan(dice)),
    ...endPlan(dice),
    startMs: dice.chance(0.6) ? 0 : dice.whole(0, Math.max(500, calmMs / 2)),
    // The first serves all, so that every queue has a worker.
    queues: index === 0 || dice.chance(0.7) ? all : [dice.pick(all)],
    events: events.sort((one, other) => one.atMs - other.atMs),
  };
}

function lifeEvent(dice: Dice, calmMs: number): LifeEvent {
  const atMs = dice.whole(1, calmMs - 1);
  const downMs = dice.whole(0, 2_000);
  return dice.weighted<LifeEvent>([
    [3, { atMs, kind: "crash", downMs }],
    [3, { atMs, kind: "stop", downMs, twice: dice.chance(0.3) }],
    [3, { atMs, kind: "freeze", forMs: dice.pick([50, 500, 2_000, 6_000, 15_000]) }],
  ]);
}

function drainPlan(dice: Dice, queues: readonly QueuePlan[], calmMs: number, calm: boolean): DrainPlan {
  const all = queues.map((_, queue) => queue);
  return {
    ...(calm ? { skewMs: 0, driftPpm: 0, early: 0 } : clockPlan(dice)),
    ...endPlan(dice),
    startMs: dice.whole(0, Math.max(2_000, calmMs)),
    queues: dice.chance(0.7) ? all : [dice.pick(all)],
    maxMs: dice.pick([300, 1_000, 3_000, 10_000, 25_000]),
    maxRequests: dice.chance(0.5) ? dice.whole(4, 40) : undefined,
    maxJobs: dice.chance(0.4) ? dice.whole(1, 8) : undefined,
    signalAfterMs: dice.chance(0.2) ? dice.whole(0, 3_000) : undefined,
    crashAfterMs: !calm && dice.chance(0.15) ? dice.whole(0, 3_000) : undefined,
  };
}

function jobPlans(
  dice: Dice,
  queues: readonly QueuePlan[],
  calmMs: number,
  calm: boolean,
  drains: boolean,
): JobPlan[] {
  const count = dice.weighted([
    [3, dice.whole(1, 4)],
    [5, dice.whole(4, 12)],
    [2, dice.whole(12, 30)],
  ]);
  // Most jobs of a world are alike, as in life; some of everything are among them.
  const usual = new Map(queues.map((queue, index) => [index, behaviour(dice, queue, calm, drains)]));
  const burst = dice.chance(0.5);
  const poisons = calm
    ? 0
    : dice.weighted([
        [6, 0],
        [3, 1],
        [1, 2],
      ] as const);
  return Array.from({ length: count }, (_, index): JobPlan => {
    const queue = dice.whole(0, queues.length - 1);
    const plan = queues[queue] as QueuePlan;
    const ownId = dice.chance(0.25);
    const does: Behaviour =
      index < poisons
        ? { kind: "kills", times: dice.chance(0.7) ? 1_000 : dice.whole(1, 2), ms: dice.pick([0, 5, 100]) }
        : dice.chance(0.6)
          ? (usual.get(queue) as Behaviour)
          : behaviour(dice, plan, calm, drains);
    return {
      atMs: burst && dice.chance(0.8) ? 0 : dice.whole(0, Math.max(1_000, calmMs)),
      queue,
      priority: dice.chance(0.75) ? "normal" : dice.pick(["high", "low"] as const),
      delayMs: dice.chance(0.8) ? 0 : dice.whole(1, 3_000),
      ownId,
      againAfterMs: ownId && dice.chance(0.4) ? dice.whole(0, 3_000) : undefined,
      does,
      looks: dice.chance(0.8),
    };
  });
}

function behaviour(dice: Dice, queue: QueuePlan, calm: boolean, drains: boolean): Behaviour {
  const ms = dice.pick([0, 1, 5, 10, 50, 200]);
  const times = dice.whole(1, queue.maxAttempts);
  const canEnd = queue.timeoutMs !== undefined || !queue.renew;
  const long = queue.leaseMs <= 5_000 ? dice.whole(queue.leaseMs, queue.leaseMs * 2) : 3_000;
  return dice.weighted<Behaviour>([
    [4, { kind: "instant" }],
    [6, { kind: "works", ms, heeds: dice.chance(0.5) }],
    [2, { kind: "works", ms: long, heeds: dice.chance(0.5) }],
    [calm ? 0 : 1, { kind: "computes", ms: dice.pick([1, 20, 200, queue.leaseMs + 300]) }],
    [2, { kind: "throws", times, ms, permanent: dice.chance(0.2) }],
    [1, { kind: "retries", times, ms, delayMs: dice.pick([undefined, 0, 30, 1_500]) }],
    [1, { kind: "deadLetters", ms }],
    [canEnd ? 2 : 0.3, { kind: "hangs", times }],
    [drains ? 2 : 0, { kind: "fetches", requests: dice.whole(1, 3), ms }],
  ]);
}

/** Makes the parts of a plan fit each other. */
function fitting(plan: Plan): Plan {
  if (plan.maxInFlight === 0) return plan;
  const most = plan.maxInFlight;
  const queues = plan.queues.map((queue) => ({
    ...queue,
    concurrency: Math.min(queue.concurrency, most),
    prefetch: queue.prefetch === "auto" ? queue.prefetch : Math.min(queue.prefetch, most),
    batchSize: Math.min(queue.batchSize, most),
  }));
  return { ...plan, queues };
}
