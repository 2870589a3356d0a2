import { describe, expect, test } from "bun:test";
import { SimulatedPlatform } from "../../runtimes/simulated.ts";
import { Changes } from "../../src/changes.ts";
import { type EddyEvent, Events } from "../../src/events.ts";
import { settledWithin, withDeadline } from "../../src/requests.ts";
import { Turns } from "../../src/turns.ts";
import { noStrayRejections } from "../support/world.ts";

noStrayRejections();

describe("waiting for a condition", () => {
  test("ends when it holds, and when the time is over, and leaves no timer", async () => {
    const platform = new SimulatedPlatform();
    const changes = new Changes();
    let ready = false;
    const waits = [
      changes.until(platform, 1_000, () => ready),
      changes.until(platform, Number.POSITIVE_INFINITY, () => ready),
    ];
    const late = changes.until(platform, 10, () => ready);
    changes.notify();
    await platform.pass(20);
    expect(await late).toBe(false);
    ready = true;
    changes.notify();
    expect(await Promise.all(waits)).toEqual([true, true]);
    expect(platform.timers).toBe(0);
    expect(await changes.until(platform, 0, () => true)).toBe(true);
    expect(await changes.until(platform, 0, () => false)).toBe(false);
  });

  test("looks once more when the time is over", async () => {
    const platform = new SimulatedPlatform();
    let ready = false;
    const waiting = new Changes().until(platform, 10, () => ready);
    ready = true;
    await platform.pass(10);
    expect(await waiting).toBe(true);
  });

  test("one that ends another's wait does not disturb it", async () => {
    const platform = new SimulatedPlatform();
    const changes = new Changes();
    let count = 0;
    const waits = [1, 2, 3].map((n) =>
      changes.until(platform, 100, () => {
        count += 1;
        return count > n;
      }),
    );
    changes.notify();
    changes.notify();
    await platform.pass(200);
    expect(await Promise.all(waits)).toEqual([true, true, true]);
  });
});

describe("bounds on what is waited for", () => {
  test("a deadline rejects, names the verb, and takes late answers in silence", async () => {
    const platform = new SimulatedPlatform();
    let late!: (error: Error) => void;
    const work = new Promise<never>((_, reject) => {
      late = reject;
    });
    const bounded = withDeadline(platform, 50, "odd", "claim", work);
    const said = bounded.catch((error: Error) => error.message);
    await platform.pass(50);
    expect(await said).toBe("The odd broker did not answer claim within 50 ms");
    late(new Error("at last"));
    expect(await withDeadline(platform, 50, "odd", "claim", Promise.resolve(7))).toBe(7);
    await expect(withDeadline(platform, 50, "odd", "claim", Promise.reject("text"))).rejects.toThrow(
      "A string was thrown instead of an Error",
    );
    expect(platform.timers).toBe(0);
  });

  test("settledWithin never rejects, and ends at the time at the latest", async () => {
    const platform = new SimulatedPlatform();
    await settledWithin(platform, 50, Promise.reject(new Error("no")));
    const waiting = settledWithin(platform, 50, new Promise(() => {}));
    await platform.run(waiting);
    expect(platform.now()).toBe(50);
  });
});

describe("events", () => {
  test("reach each listener until it is taken away, and a faulty one touches no other", () => {
    const events = new Events();
    const seen: EddyEvent[] = [];
    expect(events.heard).toBe(false);
    events.on(() => {
      throw new Error("its own");
    });
    const off = events.on((event) => seen.push(event));
    events.emit({ type: "stopped" });
    off();
    off();
    events.emit({ type: "stopped" });
    expect(seen).toEqual([{ type: "stopped" }]);
    expect(events.heard).toBe(true);
  });
});

describe("turns of the event loop", () => {
  test("are left when claims have gone out for 20 ms without one, and asked for once", async () => {
    const platform = new SimulatedPlatform();
    const turns = new Turns(platform);
    let told = 0;
    const tell = () => {
      told += 1;
    };
    expect(turns.mayClaim(platform.now(), tell)).toBe(true);
    turns.claimed();
    platform.spend(19);
    expect(turns.mayClaim(platform.now(), tell)).toBe(true);
    turns.claimed();
    platform.spend(1);
    expect(turns.mayClaim(platform.now(), tell)).toBe(false);
    expect(turns.mayClaim(platform.now(), tell)).toBe(false);
    expect(platform.timers).toBe(1);
    await platform.pass(0);
    expect([told, turns.mayClaim(platform.now(), tell), platform.timers]).toEqual([1, true, 0]);
  });

  test("a timer tells of many, not one a claim", async () => {
    const platform = new SimulatedPlatform();
    const turns = new Turns(platform);
    for (let claims = 0; claims < 9; claims += 1) {
      turns.claimed();
      expect(turns.mayClaim(platform.now(), () => {})).toBe(true);
      await platform.pass(1);
      expect(platform.timers).toBe(1);
    }
    turns.close();
    expect(platform.timers).toBe(0);
  });

  test("are counted in claims where the clock stands still", () => {
    const platform = new SimulatedPlatform({ clockStopsDuringCpu: true });
    const turns = new Turns(platform);
    for (let i = 0; i < 64; i += 1) {
      expect(turns.mayClaim(platform.now(), () => {})).toBe(true);
      turns.claimed();
    }
    expect(turns.mayClaim(platform.now(), () => {})).toBe(false);
  });
});
