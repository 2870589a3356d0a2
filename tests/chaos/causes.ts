/**
 * Why a job ran again: each run after the first is held against what the account says was done to whoever held the job before. No I/O.
 *
 * @module
 */
import type { Note } from "./notes.ts";
import { FROZEN, KILLED, STALLED, STOPPED, type Trouble } from "./troubles.ts";

export interface Repeat {
  readonly id: string;
  /** The process that ran it before, and when it and the next one began. */
  readonly holder: string;
  readonly fromMs: number;
  readonly againMs: number;
  /** In a few words, the same for all of a kind; `undefined` if nothing that was done explains it. */
  readonly cause: string | undefined;
  /** For whoever looks for a cause that is not known: what is noted of the job and of its holder's, and when, seen from the run's beginning. */
  readonly trail: readonly string[];
}

export interface CauseAccount {
  readonly notes: readonly Note[];
  readonly troubles: readonly Trouble[];
  /** Jobs whose repeats are meant: the honest ones. */
  readonly isAsked: (id: string) => boolean;
  readonly leaseMs: number;
  /** Whether a process that stands still may hold up the others: it may have the file's lock. */
  readonly sharesLock: boolean;
  /** How long before its end a server may have confirmed what it then forgets, in milliseconds; 0 for one that forgets nothing. */
  readonly forgetsMs: number;
  /** Whether what is given back or retried is a copy, stored before its original is ended: a crash between the two leaves both. */
  readonly movesByCopy: boolean;
}

/** What is known of one run of a job, and of the next one's beginning. */
interface Run {
  readonly holder: string;
  readonly fromMs: number;
  readonly againMs: number;
  readonly ackedMs: number | undefined;
  readonly wasLost: boolean;
  /** When its enqueue was answered, if it was. */
  readonly acceptedMs: number | undefined;
}

export const FORGOTTEN = "acked, and its server ended before it had written that";
export const TWOFOLD =
  "given back before, where a copy and its original were both left (by whom cannot be told)";
export const ENQUEUED_AGAIN =
  "finished before its enqueue was answered, which was sent again to a server that had forgotten its id at its end";

/** Explains each run after a job's first. */
export function explain(account: CauseAccount): Repeat[] {
  const notesOf = new Map<string, Note[]>();
  for (const note of account.notes) {
    if (!account.isAsked(note.id)) continue;
    const notes = notesOf.get(note.id);
    if (notes === undefined) notesOf.set(note.id, [note]);
    else notes.push(note);
  }
  const stalls = account.notes
    .filter(({ word }) => word === "stall")
    .map(
      ({ by, atMs, attempt }): Trouble => ({
        kind: STALLED,
        whom: by,
        fromMs: atMs - attempt,
        toMs: atMs,
      }),
    );
  const troubles = [...account.troubles, ...stalls];
  return [...notesOf].flatMap(([id, notes]) => {
    const starts = notes.filter(({ word }) => word === "start").sort((a, b) => a.atMs - b.atMs);
    return starts.slice(1).map((again, index): Repeat => {
      const first = starts[index] as Note;
      const run = runOf(first, again, notes);
      // Who stood still between taking a job and beginning it begins it after the one that has it next.
      const isOvertaken = again.attempt < first.attempt;
      const overtaken = isOvertaken ? causeOf(runOf(again, first, notes), troubles, account) : undefined;
      const cause = overtaken ?? causeOf(run, troubles, account);
      const trail = cause === undefined ? trailOf(run, again.by, notes, troubles) : [];
      return { id, holder: first.by, fromMs: first.atMs, againMs: again.atMs, cause, trail };
    });
  });
}

function trailOf(
  { holder, fromMs, againMs }: Run,
  next: string,
  notes: readonly Note[],
  troubles: readonly Trouble[],
): string[] {
  const seen = (ms: number) => `${ms - fromMs} ms`;
  const near = troubles.filter((one) => one.toMs >= fromMs - NEAR_MS && one.fromMs <= againMs);
  const those = new Set(["server", "machine", holder, placeOf(holder), next, placeOf(next)]);
  return [
    ...notes.map(({ word, by, atMs, attempt }) => `${seen(atMs)}: ${word} by ${by}, ${attempt}`),
    ...near
      .filter(({ whom }) => those.has(whom))
      .map((one) => `${seen(one.fromMs)} to ${seen(one.toMs)}: ${one.whom} ${one.kind}`),
  ];
}

function runOf(first: Note, again: Note, notes: readonly Note[]): Run {
  const own = notes.filter(({ by, atMs }) => by === first.by && atMs >= first.atMs);
  return {
    holder: first.by,
    fromMs: first.atMs,
    againMs: again.atMs,
    ackedMs: own.find(({ word, atMs }) => word === "ack" && atMs <= again.atMs)?.atMs,
    wasLost: own.some(({ word }) => word === "lost"),
    acceptedMs: notes.find(({ word }) => word === "accepted")?.atMs,
  };
}

function causeOf(run: Run, troubles: readonly Trouble[], account: CauseAccount): string | undefined {
  const { holder, fromMs, againMs, ackedMs } = run;
  const { leaseMs, forgetsMs, sharesLock } = account;
  const find = (whom: string, since: number, is: (kind: string) => boolean = () => true) =>
    troubles.find((one) => one.whom === whom && is(one.kind) && one.toMs >= since && one.fromMs <= againMs);
  if (ackedMs !== undefined) {
    return forgotten(ackedMs, run, troubles, forgetsMs) ?? twofold(run, troubles, account);
  }
  if (find(holder, fromMs, (kind) => kind === KILLED) !== undefined) return "its holder was killed";
  // One that lives must have learned that its lease was lost: its verdict was refused, or never sent.
  const diedLater = troubles.some(
    ({ whom, kind, toMs }) => whom === holder && kind === KILLED && toMs > fromMs,
  );
  if (!run.wasLost && !diedLater) return undefined;
  // The last word of the holder's that its broker surely heard may be a lease old.
  const since = fromMs - leaseMs;
  if (find(holder, since, (kind) => kind === FROZEN) !== undefined)
    return "its holder stood still past its lease";
  const server = find("server", since);
  if (server !== undefined) return `the server was ${server.kind}`;
  const network = find(placeOf(holder), fromMs) ?? find(placeOf(holder), since);
  if (network !== undefined) return `the network: ${network.kind}`;
  if (
    sharesLock &&
    troubles.some((one) => one.kind === FROZEN && one.toMs >= since && one.fromMs <= againMs)
  ) {
    return "another process stood still with the file's lock";
  }
  if (find(holder, since, (kind) => kind === STALLED) !== undefined) return `its holder was ${STALLED}`;
  return find("machine", since) === undefined ? undefined : STALLED;
}

/** Why a job came again whose ack was confirmed, from a server that forgets when it ends. */
function forgotten(
  ackedMs: number,
  { acceptedMs, againMs }: Run,
  troubles: readonly Trouble[],
  forgetsMs: number,
): string | undefined {
  if (forgetsMs === 0) return undefined;
  const ends = troubles.filter(
    ({ whom, kind }) => whom === "server" && (kind === KILLED || kind === STOPPED),
  );
  for (const { kind, fromMs: endedMs } of ends) {
    if (endedMs > againMs) continue;
    // What it confirms while it is being stopped it may not write either.
    const untilMs = ackedMs + (kind === KILLED ? forgetsMs : 0);
    if (endedMs >= ackedMs - ANSWER_MS && endedMs <= untilMs) return FORGOTTEN;
  }
  // One that was never answered may be sent again until its producer dies.
  const unansweredMs = Math.min(acceptedMs ?? againMs, againMs);
  const isSentAgain = ends.some(({ fromMs: endedMs }) => endedMs >= ackedMs && endedMs <= unansweredMs);
  return isSentAgain ? ENQUEUED_AGAIN : undefined;
}

/**
 * Why a job came again whose ack was confirmed, and too soon for the same hand-out to have run out: it was there twice. Who was about to move it cannot be told, but somebody was cut off.
 */
function twofold(
  { fromMs, againMs }: Run,
  troubles: readonly Trouble[],
  { leaseMs, movesByCopy }: CauseAccount,
): string | undefined {
  if (!movesByCopy || againMs - fromMs > leaseMs - HANDED_OUT_MS) return undefined;
  const isCutOff = troubles.some((one) => one.toMs >= againMs - 2 * leaseMs && one.fromMs <= fromMs);
  return isCutOff ? TWOFOLD : undefined;
}

/** A job begins at most so long after it was handed out, in milliseconds. */
const HANDED_OUT_MS = 200;

/** How long before a run things may have mattered, for a trail, in milliseconds. */
const NEAR_MS = 5_000;

/** The place whose process it is. */
function placeOf(process: string): string {
  return process.slice(0, process.lastIndexOf("."));
}

/** How much later than the server's confirmation its arrival may be noted, in milliseconds. */
const ANSWER_MS = 1_000;

/** How many there are of each cause, the most frequent first. */
export function tally(repeats: readonly Repeat[]): (readonly [cause: string, count: number])[] {
  const counts = new Map<string, number>();
  for (const { cause = "unexplained" } of repeats) counts.set(cause, (counts.get(cause) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a);
}
