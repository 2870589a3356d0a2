/**
 * What a bounded run learns of a queue and leaves for the next one, so that it need not grow its batches from one again: kept with the queue as its memo. Pure.
 *
 * @module
 */

export interface Learned {
  /** What a job takes, in milliseconds. */
  readonly averageMs: number;
  /** The batch that claims had grown to, per slot. */
  readonly prefetch: number;
  /** Requests that a job's handler makes. */
  readonly requestsPerJob: number;
}

const MEMO = /^1 averageMs=(\d+(?:\.\d+)?) prefetch=(\d+) requestsPerJob=(\d+(?:\.\d+)?)$/;

/** As the text of a memo: printable ASCII, well below its 256 characters. */
export function toMemo({ averageMs, prefetch, requestsPerJob }: Learned): string {
  return `1 averageMs=${averageMs.toFixed(3)} prefetch=${prefetch} requestsPerJob=${requestsPerJob.toFixed(3)}`;
}

/** From a memo; `undefined` when there is none or it is not one of ours. */
export function fromMemo(memo: string | undefined): Learned | undefined {
  const match = MEMO.exec(memo ?? "");
  if (match === null) return undefined;
  const [averageMs, prefetch, requestsPerJob] = match.slice(1).map(Number) as [number, number, number];
  return prefetch >= 1 ? { averageMs, prefetch, requestsPerJob } : undefined;
}
