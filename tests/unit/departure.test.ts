/** When verdicts that wait leave by themselves. */
import { describe, expect, test } from "bun:test";
import { type DepartureState, departureAt } from "../../src/departure.ts";

const NEVER = Number.POSITIVE_INFINITY;
const AT_ONCE = Number.NEGATIVE_INFINITY;

/** A loop in the middle of its work, on an engine that exchanges; its oldest verdict is of 1,000. */
const AT_WORK: DepartureState = {
  isRunning: true,
  isBusy: true,
  isClaiming: false,
  isTogether: false,
  isFlushing: false,
  holdsLastChances: false,
  exchanges: true,
  wasLastFull: true,
  oldestSince: 1_000,
  soonAt: 1_005,
  settleWithinMs: 250,
};
const at = (other: Partial<DepartureState>) => departureAt({ ...AT_WORK, ...other });

describe("verdicts leave by themselves", () => {
  test("when the oldest has waited its time, while jobs run that will bring a request", () => {
    expect(at({})).toBe(1_250);
    expect(at({ isBusy: false, isClaiming: true })).toBe(1_250);
    expect(at({ exchanges: false })).toBe(1_250);
  });

  test("at once when nothing will bring one: without work, at a stop, and before last chances", () => {
    for (const other of [{ isBusy: false }, { isRunning: false }, { holdsLastChances: true }]) {
      expect(at(other)).toBe(AT_ONCE);
    }
  });

  test("where claims may wait at the engine, with one under way: soon after a full one, else at once", () => {
    const waiting = { exchanges: false, isBusy: false, isClaiming: true };
    expect(at(waiting)).toBe(1_005);
    expect(at({ ...waiting, wasLastFull: false })).toBe(AT_ONCE);
  });

  test("never while those are waited for that leave with them, unless all have to", () => {
    for (const more of [{}, { isBusy: false, isClaiming: true }, { isRunning: false }]) {
      expect(at({ ...more, isTogether: true })).toBe(NEVER);
      expect(at({ ...more, isTogether: true, isFlushing: true })).toBeLessThan(NEVER);
    }
    expect(at({ isTogether: true, isBusy: false })).toBe(AT_ONCE);
  });
});
