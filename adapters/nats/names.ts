/**
 * What streams, subjects and consumers of a queue are called. Pure.
 *
 * @module
 */
import type { Priority } from "../../src/broker.ts";

/** A level's number: 0 high, 1 normal, 2 low. */
export type Level = 0 | 1 | 2;

export const LEVELS: readonly Level[] = [0, 1, 2];

const PRIORITIES: readonly Priority[] = ["high", "normal", "low"];

export function levelOf(priority: Priority): Level {
  return priority === "high" ? 0 : priority === "normal" ? 1 : 2;
}

export function priorityOf(level: Level): Priority {
  return PRIORITIES[level] as Priority;
}

/** The names of one queue's parts. */
export interface QueueNames {
  /** The stream of the jobs, and of the queue's small state. */
  readonly jobs: string;
  /** The stream of the dead letters. */
  readonly dead: string;
  /** The stream that keeps the server's notes of jobs that ran out of a foreign consumer's max_deliver. */
  readonly exhausted: string;
  /** Normal jobs are published here; all other subjects of the jobs' stream are below it. */
  readonly subject: string;
  readonly deadSubject: string;
  /** The server republishes the headers of what is stored below {@linkcode QueueNames.subject} below this one. */
  readonly news: string;
}

export function namesOf(prefix: string, queue: string): QueueNames {
  const root = prefix.toLowerCase();
  return {
    jobs: `${prefix}_JOBS_${queue}`,
    dead: `${prefix}_DEAD_${queue}`,
    exhausted: `${prefix}_EXHAUSTED_${queue}`,
    subject: `${root}.jobs.${queue}`,
    deadSubject: `${root}.dead.${queue}`,
    news: `${root}.news.${queue}`,
  };
}

/** What follows the queue's subject for jobs of a level; empty for normal ones. */
export function levelTail(level: Level): string {
  return level === 1 ? "" : `.${priorityOf(level)}`;
}

/** What follows the queue's subject for jobs of a level that were given back. */
export function returnedTail(level: Level): string {
  return `.returned.${priorityOf(level)}`;
}

/** What follows the queue's subject for the switch that pauses it. */
export const PAUSED_TAIL = ".state.paused";
/** What follows the queue's subject for the message by which the server's clock is read. */
export const CLOCK_TAIL = ".state.clock";

const LATER = /\.later\.(\d{13,16})\.(high|normal|low)\.[^.]+$/;

/** What follows the queue's subject for a job that is due later. `unique` tells jobs apart that are due together. */
export function laterTail(dueAt: number, level: Level, unique: string): string {
  return `.later.${String(dueAt).padStart(13, "0")}.${priorityOf(level)}.${unique}`;
}

export interface LaterSubject {
  /** Unix milliseconds of the server's clock. */
  readonly dueAt: number;
  readonly level: Level;
}

/** Reads when, and at which level, a job of this subject is due; `undefined` of other subjects. */
export function parseLater(subject: string): LaterSubject | undefined {
  const match = LATER.exec(subject);
  if (match === null) return undefined;
  return { dueAt: Number(match[1]), level: levelOf(match[2] as Priority) };
}
