import type { JobState, PeekedJob } from "../../src/broker.ts";
import { type ReadRecord, readRecord } from "./record.ts";

const LEVELS = { high: 0, normal: 1, low: 2 } as const;

/** What the script PEEK found, as jobs in the order in which they would be handed out. */
export function readPeeked(state: JobState, found: readonly string[]): PeekedJob[] {
  switch (state) {
    case "ready":
      return found.map((text) => toPeeked(state, readRecord(text)));
    case "held":
      return found
        .map((text) => readRecord(text))
        .sort((a, b) => LEVELS[a.priority] - LEVELS[b.priority] || a.place - b.place)
        .map((record) => ({ ...toPeeked(state, record), attempts: record.attempts + 1 }));
    case "delayed": {
      const jobs: PeekedJob[] = [];
      for (let at = 0; at + 1 < found.length; at += 2) {
        jobs.push({ ...toPeeked(state, readRecord(found[at] as string)), dueAt: Number(found[at + 1]) });
      }
      return jobs;
    }
    case "dead":
      return found.map((text) => {
        const bar = text.indexOf("|");
        const end = text.indexOf("\n");
        return {
          ...toPeeked(state, readRecord(text.slice(end + 1))),
          error: errorText(text.slice(bar + 1, end)),
          diedAt: Number(text.slice(0, bar)),
        };
      });
  }
}

function errorText(json: string): string {
  try {
    return String(JSON.parse(json));
  } catch {
    return json;
  }
}

function toPeeked(state: JobState, record: ReadRecord): PeekedJob {
  return {
    id: record.id === "" ? "malformed" : record.id,
    state,
    attempts: record.attempts,
    enqueuedAt: record.enqueuedAt,
    priority: record.priority,
    headers: record.headers,
    body: record.body,
  };
}
