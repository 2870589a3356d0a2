/**
 * How an enqueue is cut where it is too large for one request. Pure.
 *
 * @module
 */
import type { NewJob } from "../../src/broker.ts";
import { jsonBytes } from "./bytes.ts";
import { newRecord } from "./record.ts";

/** What a request has besides its jobs: keys, digest or script, ids. Generously. */
const REST_OF_REQUEST = 50_000;

/**
 * The jobs as the script takes them, in as few parts as possible, each small enough for a request. A single job larger than a request makes
 * a part of its own: that one the server must refuse.
 */
export function splitIntoParts(jobs: readonly NewJob[], maxRequestBytes: number): string[][] {
  const room = maxRequestBytes - REST_OF_REQUEST;
  const pairs: string[] = [];
  let characters = 0;
  for (const job of jobs) {
    const record = newRecord(job);
    pairs.push(`${Math.ceil(job.delayMs)}${job.dedupe ? "u" : ""}`, record);
    characters += record.length + 40;
  }
  // A character takes six bytes of JSON at most: only what may be too large is measured.
  if (characters * 6 <= room) return [pairs];
  const parts: string[][] = [[]];
  let filled = 0;
  for (let at = 0; at < pairs.length; at += 2) {
    const [when, record] = [pairs[at] as string, pairs[at + 1] as string];
    const size = jsonBytes(record) + when.length + 8;
    if (filled > 0 && filled + size > room) {
      parts.push([]);
      filled = 0;
    }
    parts[parts.length - 1]?.push(when, record);
    filled += size;
  }
  return parts;
}
