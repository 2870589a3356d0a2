/**
 * The timer of a Platform over the runtime's own, which cannot be set as far ahead.
 *
 * @module
 */
import type { CancelTimer } from "../src/platform.ts";

/** The longest time `setTimeout` can be set to, in milliseconds; above it, it would fire at once. */
export const LONGEST_TIMEOUT_MS = 2_147_483_647;

/** Calls `fn` once, in `ms` milliseconds, however many they are. Answers what cancels it. */
export function setTimer(ms: number, fn: () => void): CancelTimer {
  let left = Math.max(0, ms);
  let timer: ReturnType<typeof setTimeout>;
  const arm = () => {
    const step = Math.min(left, LONGEST_TIMEOUT_MS);
    left -= step;
    timer = setTimeout(left > 0 ? arm : fn, step);
  };
  arm();
  return () => clearTimeout(timer);
}
