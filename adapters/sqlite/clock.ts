/** A time as the tables keep it: whole milliseconds, so that it fits an INTEGER column. */
export function wholeMs(ms: number): number {
  return Math.floor(ms);
}

/** When something due in `delayMs` is due: never earlier than asked, never beyond what an integer can say. */
export function dueTime(now: number, delayMs: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, now + Math.ceil(delayMs));
}
