/**
 * A chaos run: producers and workers as processes on a real engine; kills, freezes, restarts and faults of the network at moments drawn by a seed; then calm, until all is done.
 *
 * @module
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Dice } from "../simulation/dice.ts";
import { explain, type Repeat } from "./causes.ts";
import { type Counts, disturb } from "./disturb.ts";
import { type AdapterName, type ChaosEngine, startEngine } from "./engines.ts";
import type { Eye } from "./eye.ts";
import { Member, type Program } from "./member.ts";
import { type Note, readNotes } from "./notes.ts";
import { LEASE_MS } from "./settings.ts";
import { STALLED, type Trouble, Troubles, watchStalls } from "./troubles.ts";
import { type Findings, judge } from "./verdict.ts";

export interface ChaosOptions {
  readonly adapter: AdapterName;
  /** How long the faults last, in seconds. */
  readonly seconds: number;
  readonly seed: number;
  /** How many processes of each kind. */
  readonly workers: number;
  readonly producers: number;
  readonly say?: (line: string) => void;
}

export interface ChaosReport extends Findings, Counts {
  readonly adapter: AdapterName;
  readonly seed: number;
  /** Whether confirmed acks outlive this engine's kills. */
  readonly keepsAcks: boolean;
  readonly faults: number;
  /** Each run of an honest job after its first, and why. */
  readonly runsAgain: readonly Repeat[];
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

/** How long all may take to be done once the faults are over, in milliseconds, and the share of the run that is added to it. */
const DRAIN_MS = 60_000;
const DRAIN_SHARE = 0.5;
/** For how many leases nothing may come again of what an engine keeps as held though it is finished. */
const STILL_LEASES = 4;

interface Stage {
  readonly engine: ChaosEngine;
  readonly eye: Eye;
  readonly workers: readonly Member[];
  readonly producers: readonly Member[];
  readonly troubles: Troubles;
  notes(): Note[];
}

/** Runs one. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { adapter, seed, workers, producers } = options;
  const directory = await mkdtemp(join(tmpdir(), "eddy-chaos-"));
  const troubles = new Troubles();
  const unwatch = watchStalls((ms) => troubles.add(STALLED, "machine", ms));
  const engine = await startEngine(adapter, { directory, seed, troubles });
  const members: Member[] = [];
  const add = async (program: Program, letter: string, count: number): Promise<Member[]> => {
    const added: Member[] = [];
    for (let n = 1; n <= count; n += 1) {
      const name = `${letter}${n}`;
      const link = await engine.link(name);
      added.push(new Member({ program, name, directory, seed, troubles, ...link }));
    }
    members.push(...added);
    return added;
  };
  try {
    const eye = await engine.eye();
    try {
      return await play(options, {
        engine,
        eye,
        workers: engine.notes === undefined ? await add("worker_main.ts", "w", workers) : [],
        producers: await add(engine.producer, "p", producers),
        troubles,
        notes: () => [...readNotes(directory), ...(engine.notes ?? [])],
      });
    } finally {
      await eye.close();
    }
  } finally {
    unwatch();
    await Promise.all(members.map((one) => one.end()));
    await engine.stop();
    await rm(directory, { recursive: true, force: true });
  }
}

async function play(options: ChaosOptions, stage: Stage): Promise<ChaosReport> {
  const { adapter, seconds, seed, say = () => {} } = options;
  const { engine, eye, workers, producers, troubles } = stage;
  const members = [...workers, ...producers];
  for (const one of members) one.start();
  const counts = await disturb(engine, members, new Dice(seed, "deeds"), seconds * 1_000);
  engine.calm();
  const calmAtMs = Date.now();
  const faults = engine.faults();
  say(`faults over: ${JSON.stringify({ ...counts, faults: faults.length })}`);
  await Promise.all(producers.map((one) => one.stop(30_000)));
  const left = await untilEmpty(stage, DRAIN_MS + seconds * 1_000 * DRAIN_SHARE);
  const emptyAtMs = Date.now();
  if (left === undefined) for (const line of await eye.tell()) say(line);
  await Promise.all(workers.map((one) => one.stop(15_000)));
  const dead = await eye.deadLetters();
  const notes = stage.notes();
  // What is kept though it is finished is waited for, and is no work.
  const keeps = left !== undefined && left > 0;
  const drainedAtMs = keeps ? notes.reduce((last, { atMs }) => Math.max(last, atMs), calmAtMs) : emptyAtMs;
  const poisoned = new Set(notes.filter(({ word }) => word === "acceptedPoison").map(({ id }) => id));
  for (const { id } of dead.poison) poisoned.add(id);
  const findings = judge({
    notes,
    deadWork: dead.work,
    deadPoison: dead.poison,
    calmAtMs,
    drainedAtMs,
    countsExactly: engine.keepsAcks,
  });
  const all = [...troubles.records, ...faults];
  for (const line of gapOf(findings, notes, all)) say(line);
  return {
    adapter,
    seed,
    keepsAcks: engine.keepsAcks,
    ...counts,
    faults: faults.length,
    keptFinished: left ?? 0,
    drainedMs: left === undefined ? undefined : drainedAtMs - calmAtMs,
    crashes: members.flatMap((one) => one.crashes),
    ...findings,
    runsAgain: explain({
      notes,
      troubles: all,
      isAsked: (id) => !poisoned.has(id),
      leaseMs: LEASE_MS,
      sharesLock: engine.sharesLock,
      forgetsMs: engine.forgetsMs,
      movesByCopy: engine.movesByCopy,
    }),
  };
}

/**
 * Waits until the queues have no job left but dead letters, at the latest for so long. Answers how many are still shown as held though all are finished, which only an engine
 * that forgets may do; `undefined` when there is work left.
 */
async function untilEmpty({ engine, eye, notes }: Stage, withinMs: number): Promise<number | undefined> {
  const deadline = performance.now() + withinMs;
  let stillSince = performance.now();
  while (performance.now() < deadline) {
    const { open, held } = await eye.left().catch(() => ({ open: 1, held: 0 }));
    if (open + held === 0) return 0;
    if (engine.keepsAcks || open > 0 || !allEnded(notes())) stillSince = performance.now();
    else if (performance.now() - stillSince > STILL_LEASES * LEASE_MS) return held;
    await Bun.sleep(100);
  }
  return undefined;
}

/** Whether every job whose enqueue was answered has ended by its handler's own account. */
function allEnded(notes: readonly Note[]): boolean {
  const ended = new Set(notes.filter(({ word }) => word === "end").map(({ id }) => id));
  return notes.every(({ word, id }) => word !== "accepted" || ended.has(id));
}

function countBy(notes: readonly Note[], key: (note: Note) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const note of notes) counts.set(key(note), (counts.get(key(note)) ?? 0) + 1);
  return counts;
}

/** A gap of so many milliseconds is worth a look. */
const LONG_GAP_MS = 5_000;

/** What is known of the longest time without progress, if it was long. */
function gapOf(findings: Findings, notes: readonly Note[], troubles: readonly Trouble[]): string[] {
  const { longestGapFromMs: fromMs, longestGapMs } = findings;
  if (longestGapMs < LONG_GAP_MS) return [];
  const toMs = fromMs + longestGapMs;
  const within = notes.filter(({ atMs }) => atMs > fromMs && atMs < toMs);
  const seen = (ms: number) => `${ms - fromMs} ms`;
  return [
    `nothing began or ended for ${longestGapMs} ms; meanwhile:`,
    ...[...countBy(within, ({ word, by }) => `${word} by ${by}`)].map(
      ([what, count]) => `  ${count} × ${what}`,
    ),
    ...troubles
      .filter((one) => one.toMs >= fromMs && one.fromMs <= toMs)
      .map((one) => `  ${seen(one.fromMs)} to ${seen(one.toMs)}: ${one.whom} ${one.kind}`),
  ];
}
