/**
 * The account of a chaos run that is kept apart from the queue: each process appends lines to a file of its own, and each line is on the disk before the next step is taken.
 * `WORD ID MS NUMBER`: what happened to which job, when (Unix milliseconds; all processes share one machine's clock), and the attempt where there is one.
 *
 * @module
 */
import { fsyncSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";

export type Word =
  /** An enqueue was answered; of a job that kills its worker. */
  | "accepted"
  | "acceptedPoison"
  /** A handler began; a handler finished, before its verdict was sent. */
  | "start"
  | "end"
  /** The broker confirmed the ack. */
  | "ack"
  /** The worker learned that it had lost the job's lease. */
  | "lost"
  /** Of no job: the process did not get to run for so many milliseconds. */
  | "stall";

const WORDS: ReadonlySet<string> = new Set<Word>([
  "accepted",
  "acceptedPoison",
  "start",
  "end",
  "ack",
  "lost",
  "stall",
]);
const SUFFIX = ".notes";

export interface Note {
  readonly word: Word;
  readonly id: string;
  readonly atMs: number;
  /** The attempt, of a start; how long, of a stall; else 0. */
  readonly attempt: number;
  /** Which process says so. */
  readonly by: string;
}

/** Where a process writes its notes. */
export function notesFile(directory: string, by: string): string {
  return join(directory, by + SUFFIX);
}

/** Opens a file to append to, and answers the function that writes notes, of one word and some jobs, to the disk. */
export function noteTaker(file: string): (word: Word, ids: readonly string[], attempt?: number) => void {
  const handle = openSync(file, "a");
  return (word, ids, attempt = 0) => {
    const now = Date.now();
    writeSync(handle, ids.map((id) => `${word} ${id} ${now} ${attempt}\n`).join(""));
    fsyncSync(handle);
  };
}

/** Reads all that the processes of a run noted. A last line that a kill cut in two says nothing. */
export function readNotes(directory: string): Note[] {
  return readdirSync(directory)
    .filter((name) => name.endsWith(SUFFIX))
    .flatMap((name) => {
      const text = readFileSync(join(directory, name), "utf8");
      return text
        .slice(0, text.lastIndexOf("\n") + 1)
        .split("\n")
        .filter((line) => line !== "")
        .map((line): Note => {
          const [word = "", id = "", atMs, attempt] = line.split(" ");
          if (!WORDS.has(word)) throw new Error(`Cannot read ${name}: a line begins with none of the words`);
          const by = name.slice(0, -SUFFIX.length);
          return { word: word as Word, id, atMs: Number(atMs), attempt: Number(attempt), by };
        });
    });
}
