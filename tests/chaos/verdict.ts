/**
 * What a chaos run's notes and dead letters say, held against what was promised. No I/O.
 *
 * @module
 */
import type { Note } from "./notes.ts";
import { POISON_ATTEMPTS } from "./settings.ts";

export interface DeadLetter {
  readonly id: string;
  readonly error: string;
}

export interface Findings {
  /** Jobs whose enqueue was answered. */
  readonly jobs: number;
  /** Of these, those that kill their worker. */
  readonly poison: number;
  /** Honest jobs that were accepted and that no handler finished. */
  readonly lost: readonly string[];
  /** Dead letters that should be none, poison that is none, or a reason that is not true. */
  readonly untrue: readonly string[];
  /** The most often that one of the poison began: an attempt more than it has would be one that was not counted. */
  readonly poisonStarts: number;
  /** Honest jobs that began more than once. */
  readonly repeats: number;
  /** Of these, those that began again though the broker had confirmed their ack. */
  readonly afterAck: readonly string[];
  /** Jobs whose ack was confirmed to more than one process. */
  readonly ackedTwice: readonly string[];
  /** The longest time in which no handler began or finished anything, in milliseconds. */
  readonly longestGapMs: number;
  /** When it began, Unix milliseconds. */
  readonly longestGapFromMs: number;
  /** The same, from the faults' end on. */
  readonly gapAfterMs: number;
}

export interface Account {
  readonly notes: readonly Note[];
  readonly deadWork: readonly DeadLetter[];
  readonly deadPoison: readonly DeadLetter[];
  /** When the faults ended, and when the last job was settled: Unix milliseconds. */
  readonly calmAtMs: number;
  readonly drainedAtMs: number;
  /** Whether only hand-outs that a worker saw are counted. */
  readonly countsExactly: boolean;
}

/** Where hand-outs that were lost on their way are counted too, attempts can be more than the job has. */
function isTrue(reason: string, countsExactly: boolean): boolean {
  const [, attempt, of] = /vanished while it held attempt (\d+) of (\d+);/.exec(reason) ?? [];
  if (Number(of) !== POISON_ATTEMPTS) return false;
  return countsExactly ? Number(attempt) === POISON_ATTEMPTS : Number(attempt) >= POISON_ATTEMPTS;
}

/** Judges a run. */
export function judge(account: Account): Findings {
  const { notes, deadWork, deadPoison, calmAtMs, drainedAtMs, countsExactly } = account;
  const of = (word: Note["word"]) => notes.filter((note) => note.word === word);
  const accepted = new Set(of("accepted").map(({ id }) => id));
  const poison = new Set(of("acceptedPoison").map(({ id }) => id));
  const ended = new Set(of("end").map(({ id }) => id));
  const dead = new Set(deadPoison.map(({ id }) => id));
  const starts = new Map<string, number[]>();
  for (const { id, atMs } of of("start")) starts.set(id, [...(starts.get(id) ?? []), atMs]);
  const repeated = [...starts].filter(([id, times]) => times.length > 1 && !poison.has(id) && !dead.has(id));
  const ackedAt = new Map<string, number>();
  const ackers = new Map<string, Set<string>>();
  for (const { id, atMs, by } of of("ack")) {
    ackedAt.set(id, Math.min(atMs, ackedAt.get(id) ?? atMs));
    ackers.set(id, (ackers.get(id) ?? new Set()).add(by));
  }
  return {
    jobs: accepted.size + poison.size,
    poison: poison.size,
    lost: [...accepted].filter((id) => !ended.has(id)),
    untrue: [
      // Nothing may kill an honest job: its attempts are more than a run has faults.
      ...deadWork.map(({ id, error }) => `${id}: ${error}`),
      ...[...poison].filter((id) => !dead.has(id)).map((id) => `${id}: no dead letter`),
      ...deadPoison
        .filter(({ error }) => !isTrue(error, countsExactly))
        .map(({ id, error }) => `${id}: ${error}`),
    ],
    poisonStarts: Math.max(0, ...[...dead].map((id) => starts.get(id)?.length ?? 0)),
    repeats: repeated.length,
    afterAck: repeated
      .filter(([id, times]) => times.some((atMs) => atMs > (ackedAt.get(id) ?? Number.POSITIVE_INFINITY)))
      .map(([id]) => id),
    ackedTwice: [...ackers].filter(([, by]) => by.size > 1).map(([id]) => id),
    ...gaps(
      [...of("start"), ...of("end")].map(({ atMs }) => atMs),
      calmAtMs,
      drainedAtMs,
    ),
  };
}

function gaps(
  progress: readonly number[],
  calmAtMs: number,
  drainedAtMs: number,
): Pick<Findings, "longestGapMs" | "longestGapFromMs" | "gapAfterMs"> {
  const times = [...progress, drainedAtMs].sort((a, b) => a - b);
  let longestGapMs = 0;
  let gapAfterMs = 0;
  let last = times[0] ?? drainedAtMs;
  let longestGapFromMs = last;
  for (const time of times) {
    if (time - last > longestGapMs) {
      longestGapMs = time - last;
      longestGapFromMs = last;
    }
    if (time > calmAtMs) gapAfterMs = Math.max(gapAfterMs, time - Math.max(last, calmAtMs));
    last = time;
  }
  return { longestGapMs, longestGapFromMs, gapAfterMs };
}
