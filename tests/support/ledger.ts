/**
 * Reading the ledger that victims write, and waiting for what it says.
 *
 * @module
 */
import { existsSync, readFileSync, watch } from "node:fs";
import { dirname } from "node:path";

export interface Line {
  readonly word: string;
  readonly id: string;
  readonly attempt: number;
}

/** The complete lines written so far. */
export function readLedger(file: string): Line[] {
  if (!existsSync(file)) return [];
  const text = readFileSync(file, "utf8");
  return text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [word = "", id = "", attempt = "0"] = line.split(" ");
      return { word, id, attempt: Number(attempt) };
    });
}

/** Resolves when the ledger satisfies a condition; rejects after `withinMs`, saying what it waited for. */
export function untilLedger(
  file: string,
  what: string,
  condition: (lines: readonly Line[]) => boolean,
  withinMs = 30_000,
): Promise<Line[]> {
  return new Promise((resolve, reject) => {
    const look = () => {
      const lines = readLedger(file);
      if (!condition(lines)) return;
      finish();
      resolve(lines);
    };
    const watcher = watch(dirname(file), look);
    // A watch may miss an event that came before it began.
    const again = setInterval(look, 50);
    const late = setTimeout(() => {
      finish();
      reject(
        new Error(
          `Waited ${withinMs} ms in vain for: ${what}. The ledger's end: ${JSON.stringify(readLedger(file).slice(-5))}`,
        ),
      );
    }, withinMs);
    const finish = () => {
      watcher.close();
      clearInterval(again);
      clearTimeout(late);
    };
    look();
  });
}

/** Jobs of which a line says something. */
export function ids(lines: readonly Line[], word: string): string[] {
  return lines.filter((line) => line.word === word).map((line) => line.id);
}
