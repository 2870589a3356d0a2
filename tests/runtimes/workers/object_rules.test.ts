/** When a queue's object works and what its alarm is set to: the rules by themselves, on a clock of the test's own. */
import { describe, expect, test } from "bun:test";
import { gapAfter, goesOn, growingGaps } from "../../../runtimes/workers/gaps.ts";
import { ObjectAlarm } from "../../../runtimes/workers/object_alarm.ts";
import { ObjectRuns } from "../../../runtimes/workers/object_runs.ts";
import type { AlarmStorage } from "../../../runtimes/workers/types.ts";
import type { DrainReport } from "../../../src/mod.ts";

const REPORT: DrainReport = {
  jobs: 1,
  acked: 1,
  retried: 0,
  dead: 0,
  released: 0,
  lost: 0,
  abandoned: 0,
  requests: 0,
  ms: 1,
  stopped: "empty",
  left: 0,
  leftReady: 0,
  leftDelayed: 0,
  leftHeld: 0,
  nextDueMs: null,
};

/** A storage of which only the alarm matters. */
function alarmOf(): { alarm: ObjectAlarm; sets: (number | null)[] } {
  const sets: (number | null)[] = [];
  const storage = {
    setAlarm: async (at: number) => {
      sets.push(at);
    },
    deleteAlarm: async () => {
      sets.push(null);
    },
  } as unknown as AlarmStorage;
  return { alarm: new ObjectAlarm(storage, () => {}), sets };
}

interface World {
  now: number;
  due: Map<string, number>;
  drained: string[][];
  failed: number[];
  report: () => Promise<DrainReport>;
}

function worldOf(): { runs: ObjectRuns; world: World; sets: (number | null)[] } {
  const { alarm, sets } = alarmOf();
  const world: World = {
    now: 1_000_000,
    due: new Map(),
    drained: [],
    failed: [],
    report: async () => {
      world.due.clear();
      return REPORT;
    },
  };
  const runs = new ObjectRuns({
    alarm,
    wallNow: () => world.now,
    dueMs: () => world.due,
    drain: async (queues) => {
      world.drained.push([...queues]);
      return await world.report();
    },
    failed: (_error, retryInMs) => world.failed.push(retryInMs),
  });
  return { runs, world, sets };
}

describe("a queue's object", () => {
  test("works at once on what is due, with the alarm behind it, and rests when nothing is", async () => {
    const { runs, world, sets } = worldOf();
    world.due.set("a", 0).set("b", 5_000);
    runs.touched();
    expect(sets).toEqual([world.now]);
    await runs.alarmed();
    expect(world.drained).toEqual([["a"]]);
    expect(sets).toEqual([world.now, world.now + 1_000, null]);
  });

  test("sets the alarm for what is due later, and only ever earlier", () => {
    const { runs, world, sets } = worldOf();
    world.due.set("a", 5_000);
    runs.touched();
    world.due.set("a", 8_000);
    runs.touched();
    world.due.set("b", 2_000);
    runs.touched();
    expect(sets).toEqual([world.now + 5_000, world.now + 2_000]);
    expect(world.drained).toEqual([]);
  });

  test("never runs twice at a time", async () => {
    const { runs, world } = worldOf();
    const gate = Promise.withResolvers<void>();
    world.report = async () => {
      await gate.promise;
      world.due.clear();
      return REPORT;
    };
    world.due.set("a", 0);
    runs.touched();
    runs.touched();
    const joined = runs.alarmed();
    runs.touched();
    gate.resolve();
    await joined;
    expect(world.drained).toHaveLength(1);
  });

  test("goes on in a new event when its budget is used up", async () => {
    const { runs, world, sets } = worldOf();
    world.report = async () => ({ ...REPORT, stopped: "requests" });
    world.due.set("a", 0);
    await runs.alarmed();
    expect(world.drained).toHaveLength(1);
    expect(sets.at(-1)).toBe(world.now);
  });

  test("does not spin either when a queue is paused with work in it", async () => {
    const { runs, world, sets } = worldOf();
    world.report = async () => ({ ...REPORT, jobs: 0, acked: 0, stopped: "paused" });
    world.due.set("a", 0);
    await runs.alarmed();
    expect(world.drained).toHaveLength(1);
    expect(sets.at(-1)).toBe(world.now + 1_000);
  });

  test("looks again for what came while it ended", async () => {
    const { runs, world } = worldOf();
    let rounds = 0;
    world.report = async () => {
      rounds += 1;
      if (rounds === 2) world.due.clear();
      return REPORT;
    };
    world.due.set("a", 0);
    await runs.alarmed();
    expect(world.drained).toHaveLength(2);
  });

  test("does not spin when what is due cannot be had", async () => {
    const { runs, world, sets } = worldOf();
    world.report = async () => ({ ...REPORT, jobs: 0, acked: 0 });
    world.due.set("a", 0);
    await runs.alarmed();
    expect(world.drained).toHaveLength(1);
    expect(sets.at(-1)).toBe(world.now + 1_000);
  });

  test("tries again in growing gaps when it fails, and touches do not hurry it", async () => {
    const { runs, world, sets } = worldOf();
    const sound = world.report;
    world.report = () => Promise.reject(new Error("no"));
    world.due.set("a", 0);
    for (let n = 0; n < 8; n += 1) await runs.alarmed();
    expect(world.failed).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    const drains = world.drained.length;
    runs.touched();
    expect(world.drained).toHaveLength(drains);
    expect(sets.at(-1)).toBe(world.now + 60_000);
    world.report = sound;
    await runs.alarmed();
    expect(sets.at(-1)).toBe(null);
  });
});

describe("gaps", () => {
  test("grow from the first to the longest, and begin again", () => {
    const gaps = growingGaps({ min: 100, max: 500 });
    expect([gaps.next(0), gaps.next(0), gaps.next(0), gaps.next(0), gaps.next(0)]).toEqual([
      100, 200, 400, 500, 500,
    ]);
    gaps.begin();
    expect(gaps.next(0.8)).toBe(80);
  });

  test("have defaults, and are checked", () => {
    expect(growingGaps({}).next(0)).toBe(250);
    expect(() => growingGaps({ min: 0 })).toThrow(/min is 0; give a whole number from 1 on/);
    expect(() => growingGaps({ min: 200, max: 100 })).toThrow(/max is 100; raise it to min \(200\)/);
  });
});

describe("the gap after a drain", () => {
  test("ends when the next job is due, if that is sooner", () => {
    expect(gapAfter({ jobs: 0, nextDueMs: null }, 5_000)).toBe(5_000);
    expect(gapAfter({ jobs: 0, nextDueMs: 700 }, 5_000)).toBe(700);
    expect(gapAfter({ jobs: 0, nextDueMs: 9_000 }, 5_000)).toBe(5_000);
    expect(gapAfter({ jobs: 3, nextDueMs: 0 }, 250)).toBe(0);
  });

  test("is kept when what is said to be due was not to be had", () => {
    expect(gapAfter({ jobs: 0, nextDueMs: 0 }, 5_000)).toBe(5_000);
  });

  test("is none when a budget ended it, but not when queues are paused", () => {
    expect((["time", "requests", "jobs", "signal"] as const).every((stopped) => goesOn({ stopped }))).toBe(
      true,
    );
    expect((["empty", "paused"] as const).some((stopped) => goesOn({ stopped }))).toBe(false);
  });
});
