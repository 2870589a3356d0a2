/**
 * A chaos run: producers and workers as processes on a real engine; kills, freezes, restarts and faults of the network at moments drawn by a seed; then calm, until all is done.
 *
 * @module
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunPlatform, chooseBroker, openBroker } from "../../runtimes/bun/mod.ts";
import { type Broker, type BrokerQueue, type QueueDefinition, resolveOptions } from "../../src/mod.ts";
import { Dice } from "../simulation/dice.ts";
import { type AdapterName, type ChaosEngine, startEngine } from "./engines.ts";
import { Member } from "./member.ts";
import { readNotes } from "./notes.ts";
import { LEASE_MS, poison, work } from "./process.ts";
import { type DeadLetter, type Findings, judge } from "./verdict.ts";

export interface ChaosOptions {
  readonly adapter: AdapterName;
  /** How long the faults last, in seconds. */
  readonly seconds: number;
  readonly seed: number;
  readonly say?: (line: string) => void;
}

export interface ChaosReport extends Findings {
  readonly adapter: AdapterName;
  readonly seed: number;
  /** Whether confirmed acks outlive this engine's kills. */
  readonly keepsAcks: boolean;
  readonly kills: number;
  readonly freezes: number;
  readonly restarts: number;
  readonly faults: number;
  /** From the faults' end until nothing was left, in milliseconds; `undefined` when something was. */
  readonly drainedMs: number | undefined;
  /**
   * Jobs that the engine still shows as held though each was finished, and handed none of out for several leases: a nats-server that was killed may forget that it had
   * removed what was acked, and remember the ack.
   */
  readonly keptFinished: number;
  /** Processes that ended as nobody had asked them to. */
  readonly crashes: readonly string[];
}

const WORKERS = 3;
const PRODUCERS = 2;
/** How long all may take to be done once the faults are over, in milliseconds, and the share of the run that is added to it. */
const DRAIN_MS = 60_000;
const DRAIN_SHARE = 0.5;
const MOST_DEAD = 10_000;
/** For how many leases nothing may come again of what an engine keeps as held though it is finished. */
const STILL_LEASES = 4;

type Deed = "kill" | "freeze" | "restart" | "cut" | "hold";
const DEEDS: readonly (readonly [number, Deed])[] = [
  [5, "kill"],
  [3, "freeze"],
  [2, "restart"],
  [2, "cut"],
  [1, "hold"],
];

/** Runs one. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const directory = await mkdtemp(join(tmpdir(), "eddy-chaos-"));
  const engine = await startEngine(options.adapter, directory, options.seed);
  const members = [
    ...Array.from({ length: WORKERS }, (_, n) => member("worker_main.ts", `w${n + 1}`)),
    ...Array.from({ length: PRODUCERS }, (_, n) => member("producer_main.ts", `p${n + 1}`)),
  ];
  function member(program: "worker_main.ts" | "producer_main.ts", name: string): Member {
    const { broker, env } = engine;
    return new Member({ program, name, broker, env, directory, seed: options.seed });
  }
  try {
    const broker = await openBroker(chooseBroker(engine.direct, engine.env), bunPlatform(), () => {});
    try {
      return await play(options, engine, members, broker, directory);
    } finally {
      await broker.close();
    }
  } finally {
    await Promise.all(members.map((one) => one.end()));
    await engine.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

async function play(
  options: ChaosOptions,
  engine: ChaosEngine,
  members: readonly Member[],
  broker: Broker,
  directory: string,
): Promise<ChaosReport> {
  const { adapter, seconds, seed, say = () => {} } = options;
  const queues = [await opened(broker, work), await opened(broker, poison)] as const;
  for (const one of members) one.start();
  const counts = await disturb(engine, members, new Dice(seed, "deeds"), seconds * 1_000);
  engine.calm();
  const calmAtMs = Date.now();
  const faults = engine.faults();
  say(
    `faults over: ${counts.kills} kills, ${counts.freezes} freezes, ${counts.restarts} restarts, ${faults} faults`,
  );
  await Promise.all(members.slice(WORKERS).map((one) => one.stop(30_000)));
  const left = await untilEmpty(queues, DRAIN_MS + seconds * 1_000 * DRAIN_SHARE, engine.keepsAcks, () =>
    allEnded(directory),
  );
  const isDrained = left !== undefined;
  const drainedAtMs = Date.now();
  if (!isDrained) for (const one of queues) for (const line of await leftOf(one)) say(line);
  await Promise.all(members.slice(0, WORKERS).map((one) => one.stop(15_000)));
  const [deadWork, deadPoison] = [await deadLetters(queues[0]), await deadLetters(queues[1])];
  return {
    adapter,
    seed,
    keepsAcks: engine.keepsAcks,
    ...counts,
    faults,
    keptFinished: left ?? 0,
    drainedMs: isDrained ? drainedAtMs - calmAtMs : undefined,
    crashes: members.flatMap((one) => one.crashes),
    ...judge({
      notes: readNotes(directory),
      deadWork,
      deadPoison,
      calmAtMs,
      drainedAtMs,
      countsExactly: engine.keepsAcks,
    }),
  };
}

/** Does what the dice say for so long. What lasts overlaps with what comes next; all of it is over when this resolves. */
async function disturb(
  engine: ChaosEngine,
  members: readonly Member[],
  dice: Dice,
  forMs: number,
): Promise<{ kills: number; freezes: number; restarts: number }> {
  const counts = { kills: 0, freezes: 0, restarts: 0 };
  const endsAt = performance.now() + forMs;
  const frozen = new Map<Member, Promise<void>>();
  let server: Promise<void> | undefined;
  let network: Promise<void> | undefined;
  const choices = DEEDS.filter(([, deed]) => {
    if (deed === "restart") return engine.restart !== undefined;
    return deed === "kill" || deed === "freeze" || engine.disturb !== undefined;
  });
  while (performance.now() < endsAt) {
    await Bun.sleep(dice.whole(100, 1_500));
    const deed = dice.weighted(choices);
    const one = dice.pick(members);
    const lastsMs = dice.whole(LEASE_MS / 4, LEASE_MS * 2);
    if (deed === "kill") {
      // One that stands still can be killed too.
      one.signal("SIGKILL");
      counts.kills += 1;
    } else if (deed === "freeze" && !frozen.has(one)) {
      one.signal("SIGSTOP");
      counts.freezes += 1;
      frozen.set(
        one,
        Bun.sleep(lastsMs).then(() => {
          one.signal("SIGCONT");
          frozen.delete(one);
        }),
      );
    } else if (deed === "restart" && server === undefined) {
      counts.restarts += 1;
      server = engine.restart?.(dice.whole(0, 800), dice.chance(0.5)).finally(() => {
        server = undefined;
      });
    } else if (deed === "cut") {
      await engine.disturb?.("cut", 0);
    } else if (deed === "hold" && network === undefined) {
      network = engine.disturb?.("freeze", lastsMs).finally(() => {
        network = undefined;
      });
    }
  }
  await Promise.all([...frozen.values(), server, network]);
  return counts;
}

async function opened(broker: Broker, definition: QueueDefinition<{ pad: string }>): Promise<BrokerQueue> {
  // Of the workers' lease: where it belongs to the queue, whoever opens it first decides.
  const { settings } = resolveOptions(definition.handle(() => {}, { leaseMs: LEASE_MS }));
  const asked = broker.queue(definition.name, { ...settings, requestTimeoutMs: 5_000 });
  await asked.open();
  return asked;
}

/**
 * Waits until the queues have no job left but dead letters, at the latest for so long. Answers how many are still shown as held though all are finished, which only an engine
 * that forgets may do; `undefined` when there is work left.
 */
async function untilEmpty(
  queues: readonly BrokerQueue[],
  withinMs: number,
  keepsAcks: boolean,
  allDone: () => boolean,
): Promise<number | undefined> {
  const deadline = performance.now() + withinMs;
  let stillSince = performance.now();
  while (performance.now() < deadline) {
    const sizes = await Promise.all(queues.map((one) => one.sizes?.())).catch(() => [undefined]);
    let [open, held] = [0, 0];
    for (const one of sizes) {
      open += one === undefined ? 1 : one.ready + one.delayed;
      held += one?.held ?? 0;
    }
    if (open + held === 0) return 0;
    if (keepsAcks || open > 0 || !allDone()) stillSince = performance.now();
    else if (performance.now() - stillSince > STILL_LEASES * LEASE_MS) return held;
    await Bun.sleep(50);
  }
  return undefined;
}

/** Whether every job whose enqueue was answered has ended by its handler's own account. */
function allEnded(directory: string): boolean {
  const notes = readNotes(directory);
  const ended = new Set(notes.filter(({ word }) => word === "end").map(({ id }) => id));
  return notes.every(({ word, id }) => word !== "accepted" || ended.has(id));
}

/** What a queue has left, for whoever looks for the cause. */
async function leftOf(asked: BrokerQueue): Promise<string[]> {
  const lines = [`${asked.name} has left ${JSON.stringify(await asked.sizes?.())}`];
  for (const state of ["ready", "delayed", "held"] as const) {
    for (const { id, attempts } of (await asked.peek?.(state, 10, false)) ?? []) {
      lines.push(`${asked.name} ${state}: ${id}, ${attempts} attempts`);
    }
  }
  return lines;
}

async function deadLetters(asked: BrokerQueue): Promise<DeadLetter[]> {
  const dead = (await asked.peek?.("dead", MOST_DEAD, false)) ?? [];
  return dead.map(({ id, error = "no reason" }) => ({ id, error }));
}
