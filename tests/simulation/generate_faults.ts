/**
 * Makes what goes wrong in a world.
 *
 * @module
 */
import type { Dice } from "./dice.ts";
import type { FaultKind, FaultPlan, LifeEvent, LinkVerb, Plan, QueuePlan, TendingPlan } from "./plan.ts";

const VERBS: readonly LinkVerb[] = [
  "open",
  "claim",
  "settle",
  "renew",
  "exchange",
  "abandon",
  "watch",
  "unwatch",
];

/** What the links do to requests. */
export function faultPlans(
  dice: Dice,
  calmMs: number,
  workers: number,
  drains: number,
  queues: readonly QueuePlan[],
): FaultPlan[] {
  const owners = ["all", "producer"];
  for (let index = 0; index < workers; index += 1) owners.push(`worker${index}`);
  for (let index = 0; index < drains; index += 1) owners.push(`drain${index}`);
  const longest = Math.max(...queues.map((queue) => queue.requestTimeoutMs));
  return Array.from(
    {
      length: dice.weighted([
        [1, 0],
        [3, 1],
        [3, 2],
        [2, 3],
        [1, 5],
      ] as const),
    },
    () => {
      const kind = dice.weighted<FaultKind>([
        [2, "lost"],
        [4, "replyLost"],
        [1, "hangs"],
        [2, "hangsAfter"],
        [2, "error"],
        [0.5, "throws"],
        [0.3, "refused"],
        [3, "slow"],
        [3, "repeats"],
        [2, "cut"],
      ]);
      const fromMs = dice.chance(0.4) ? 0 : dice.whole(0, calmMs - 1);
      const toMs = dice.chance(0.4) ? calmMs : Math.min(calmMs, fromMs + dice.whole(1, 6_000));
      return {
        fromMs,
        toMs,
        whose: dice.pick(owners),
        verbs: kind === "cut" || dice.chance(0.5) ? "all" : [dice.pick(VERBS), dice.pick(VERBS)],
        chance: kind === "cut" ? 1 : dice.pick([0.1, 0.3, 0.6, 1]),
        kind,
        // Slow ones may come long after they were given up.
        ms: kind === "slow" ? dice.pick([longest, longest * 2, 20_000]) : dice.whole(1, 15_000),
      };
    },
  );
}

/** What somebody does to the queues. */
export function tendingPlans(dice: Dice, queues: number, calmMs: number): TendingPlan[] {
  return Array.from(
    {
      length: dice.weighted([
        [6, 0],
        [2, 1],
        [1, 3],
      ] as const),
    },
    (): TendingPlan => {
      const atMs = dice.whole(0, calmMs - 1);
      const queue = dice.whole(0, queues - 1);
      return dice.chance(0.5)
        ? { atMs, queue, kind: "pause", forMs: dice.whole(1, 4_000) }
        : { atMs: dice.chance(0.5) ? atMs : calmMs + 5_000, queue, kind: "redrive" };
    },
  );
}

/** How late what a worker sent before its end may arrive, in milliseconds. */
const LATE_MS = 20_000;

/**
 * Adds, to some plans, what chance alone seldom brings together: a worker whose last messages are under way for long, and that crashes, stops or freezes meanwhile. Verdicts
 * arrive when others hold the jobs, claims when their lease was given up.
 */
export function withEpisode(dice: Dice, plan: Plan): Plan {
  if (!dice.chance(0.2)) return plan;
  const index = dice.whole(0, plan.workers.length - 1);
  const fromMs = dice.chance(0.6) ? 0 : dice.whole(0, plan.calmMs - 1);
  const toMs = Math.min(plan.calmMs, fromMs + dice.pick([500, 5_000, plan.calmMs]));
  const verbs: readonly LinkVerb[] = dice.chance(0.6) ? ["settle", "exchange"] : ["claim", "exchange"];
  const fault: FaultPlan = {
    fromMs,
    toMs,
    whose: `worker${index}`,
    verbs,
    chance: 1,
    kind: "slow",
    ms: LATE_MS,
  };
  const atMs = Math.min(plan.calmMs - 1, fromMs + dice.whole(1, dice.pick([300, 3_000])));
  const event = dice.pick<LifeEvent>([
    { atMs, kind: "crash", downMs: dice.whole(0, 2_000) },
    { atMs, kind: "stop", downMs: dice.whole(0, 2_000), twice: false },
    { atMs, kind: "freeze", forMs: dice.pick([2_000, 6_000, 15_000]) },
  ]);
  const workers = plan.workers.map((worker, other) =>
    other === index ? { ...worker, events: [event, ...worker.events] } : worker,
  );
  return { ...plan, workers, faults: [fault, ...plan.faults] };
}
