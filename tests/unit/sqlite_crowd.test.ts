/** How often those who wait for the database look, few or many. */
import { describe, expect, test } from "bun:test";
import { CROWD_MS, Crowd, nextLookMs } from "../../adapters/sqlite/crowd.ts";
import { seededRandom } from "../../runtimes/simulated.ts";

const MIDDLE = 0.5;

describe("the next look", () => {
  test("who knows of no others looks after 1 to 3 ms, however long it waits", () => {
    for (const waitedMs of [0, 10, 100, 10_000]) {
      expect(nextLookMs(1, waitedMs, 0)).toBe(1);
      expect(nextLookMs(1, waitedMs, 1)).toBe(3);
    }
  });

  test("all together look as often, few or many", () => {
    for (const size of [1, 2, 8, 32, 64]) {
      const looksPerMs = size / nextLookMs(size, 0, MIDDLE);
      expect(looksPerMs).toBeGreaterThan(0.3);
      expect(looksPerMs).toBeLessThanOrEqual(0.5);
    }
  });

  test("in the largest of crowds none waits for longer between looks than in a large one", () => {
    expect(nextLookMs(1000, 0, MIDDLE)).toBe(nextLookMs(64, 0, MIDDLE));
  });

  test("the longer one has waited the sooner it is, down to that of one alone", () => {
    const gaps = [0, 50, 100, 200, 300, 400, 1000].map((ms) => nextLookMs(32, ms, MIDDLE));
    expect(gaps).toEqual([...gaps].sort((a, b) => b - a));
    expect(gaps.at(-1)).toBe(nextLookMs(1, 0, MIDDLE));
  });
});

describe("what is known of the crowd", () => {
  test("only who joined counts, and not again at once", () => {
    const crowd = new Crowd();
    let counts = 0;
    const count = () => {
      counts += 1;
      return 7;
    };
    crowd.countAt(1000, count);
    expect([counts, crowd.sizeAt(1000)]).toEqual([0, 1]);
    crowd.join();
    crowd.countAt(1001, count);
    crowd.countAt(5000, count);
    expect([counts, crowd.sizeAt(1001)]).toEqual([1, 7]);
    crowd.join();
    crowd.countAt(1002, count);
    expect(counts).toBe(1);
  });

  test("it is forgotten by who was not part of it for a while", () => {
    const crowd = new Crowd();
    crowd.join();
    crowd.countAt(0, () => 7);
    expect(crowd.sizeAt(CROWD_MS - 1)).toBe(7);
    expect(crowd.sizeAt(CROWD_MS)).toBe(1);
  });

  test("a count that failed is not tried again in the same transaction", () => {
    const crowd = new Crowd();
    crowd.join();
    const fail = () => {
      throw new Error("on purpose");
    };
    expect(() => crowd.countAt(0, fail)).toThrow("on purpose");
    crowd.countAt(0, fail);
    expect(crowd.sizeAt(0)).toBe(1);
  });
});

/** Transactions of so many milliseconds, so far apart: who looks in between takes the turn over. */
const WRITE_MS = 0.4;
const APART_MS = 0.08;
const LASTS_MS = 20_000;

/** Plays so many busy workers on one database, all of which know how many they are. */
function play(size: number) {
  const random = seededRandom(size);
  const workers = Array.from({ length: size }, () => ({
    nextAt: random(),
    since: undefined as number | undefined,
    writes: 0,
  }));
  const waits: number[] = [];
  let freeAt = 0;
  let looks = 0;
  for (;;) {
    const worker = workers.reduce((first, one) => (one.nextAt < first.nextAt ? one : first));
    const now = worker.nextAt;
    if (now >= LASTS_MS) break;
    if (now < freeAt) {
      looks += 1;
      worker.since ??= now;
      worker.nextAt = now + nextLookMs(size, now - worker.since, random());
      continue;
    }
    if (worker.since !== undefined) waits.push(now - worker.since);
    worker.since = undefined;
    worker.writes += 1;
    freeAt = now + WRITE_MS;
    worker.nextAt = freeAt + APART_MS;
  }
  const writes = workers.map((one) => one.writes);
  const sum = writes.reduce((all, one) => all + one, 0);
  return {
    looksPerMs: looks / LASTS_MS,
    used: (sum * (WRITE_MS + APART_MS)) / LASTS_MS,
    writesPerTurn: sum / waits.length,
    longestWaitMs: Math.max(...waits),
    fairness: (sum * sum) / (size * writes.reduce((all, one) => all + one * one, 0)),
  };
}

test.each([2, 8, 32])("a crowd of %d: few looks, long turns, short waits, equal shares", (size) => {
  const { looksPerMs, used, writesPerTurn, longestWaitMs, fairness } = play(size);
  expect(looksPerMs).toBeLessThan(2);
  expect(used).toBeGreaterThan(0.95);
  expect(writesPerTurn).toBeGreaterThan(5);
  expect(longestWaitMs).toBeLessThan(100 + 20 * size);
  expect(fairness).toBeGreaterThan(0.95);
});
