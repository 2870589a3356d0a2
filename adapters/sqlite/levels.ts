/** A waiting level is passed over at most this often in a row before it gives a job. */
const MOST_PASSED_OVER = 7;

/** How often each lower level was passed over since it last gave a job. Kept with the queue, so it counts over claims. */
export interface PassedOver {
  readonly normal: number;
  readonly low: number;
}

/** How many jobs a claim takes of each level, high first. */
export interface Share {
  readonly take: readonly [number, number, number];
  readonly passed: PassedOver;
}

/** The bytes of each level's first jobs, in order. */
export type Waiting = readonly [readonly number[], readonly number[], readonly number[]];

/**
 * Shares up to `max` deliveries of up to `mostBytes` together among the levels, but at least one: the longest beginning of what
 * {@linkcode shareOut} would hand out one by one. Pure.
 */
export function shareWithin(max: number, mostBytes: number, waiting: Waiting, before: PassedOver): Share {
  const shareOf = (count: number) =>
    shareOut(count, [waiting[0].length, waiting[1].length, waiting[2].length], before);
  const fits = (share: Share) => bytesOf(share, waiting) <= mostBytes;
  const all = shareOf(max);
  if (fits(all)) return all;
  let fitting = 1;
  let tooMany = max;
  while (tooMany - fitting > 1) {
    const count = Math.floor((fitting + tooMany) / 2);
    if (fits(shareOf(count))) fitting = count;
    else tooMany = count;
  }
  return shareOf(fitting);
}

function bytesOf({ take }: Share, waiting: Waiting): number {
  let sum = 0;
  for (const [level, bytes] of waiting.entries()) {
    for (const one of bytes.slice(0, take[level])) sum += one;
  }
  return sum;
}

/**
 * Shares up to `max` deliveries among the levels: high first, but no waiting level is passed over more than seven times in a
 * row. Pure. `there` says how many jobs each level has; counts above `max` may be cut to `max`.
 */
export function shareOut(max: number, there: readonly [number, number, number], before: PassedOver): Share {
  const [high, normal, low] = there;
  if (high === 0 && normal === 0 && low === 0) return { take: [0, 0, 0], passed: before };
  if (normal === 0 && low === 0) return { take: [Math.min(max, high), 0, 0], passed: { normal: 0, low: 0 } };
  if (high === 0 && low === 0) return { take: [0, Math.min(max, normal), 0], passed: { normal: 0, low: 0 } };
  const take: [number, number, number] = [0, 0, 0];
  let { normal: normalPassed, low: lowPassed } = before;
  for (let n = 0; n < max; n += 1) {
    const hasHigh = take[0] < high;
    const hasNormal = take[1] < normal;
    const hasLow = take[2] < low;
    let level: 0 | 1 | 2;
    if (hasNormal && normalPassed >= MOST_PASSED_OVER) level = 1;
    else if (hasLow && lowPassed >= MOST_PASSED_OVER) level = 2;
    else if (hasHigh) level = 0;
    else if (hasNormal) level = 1;
    else if (hasLow) level = 2;
    else break;
    take[level] += 1;
    if (!hasNormal || level === 1) normalPassed = 0;
    else if (level === 0) normalPassed += 1;
    if (!hasLow || level === 2) lowPassed = 0;
    else lowPassed += 1;
  }
  return { take, passed: { normal: normalPassed, low: lowPassed } };
}
