/** The demo's phases under a simulated clock, where a job takes exactly as long as it says, and its own judgement. */
import { describe, expect, test } from "bun:test";
import { MemoryBroker } from "../../adapters/memory.ts";
import {
  checksOf,
  PHASES,
  type Phase,
  prefetchDemo,
  runLengths,
  runPhase,
  sizesOf,
} from "../../examples/prefetch.ts";
import { openBroker } from "../../runtimes/bun/mod.ts";
import { SimulatedPlatform } from "../../runtimes/simulated.ts";
import type { Broker } from "../../src/mod.ts";
import { scratch } from "../cli/process.ts";

const BROKERS: [string, (platform: SimulatedPlatform, file: string) => Promise<Broker>][] = [
  ["memory", async (platform) => new MemoryBroker({ now: () => platform.now() })],
  ["sqlite", (platform, file) => openBroker({ kind: "sqlite", file }, platform)],
];

describe.each(BROKERS)("on %s", (_, connect) => {
  test("the demo passes, prints what it saw, and leaves its queues empty", async () => {
    await using folder = await scratch();
    const platform = new SimulatedPlatform();
    const broker = await connect(platform, folder.file("q.sqlite"));
    const lines: string[] = [];
    const cleared: string[] = [];
    const watched = Object.assign(Object.create(broker) as Broker, {
      queue(...args: Parameters<Broker["queue"]>) {
        cleared.push(args[0]);
        return broker.queue(...args);
      },
    });
    expect(
      await platform.run(prefetchDemo({ broker: watched, platform, print: (line) => lines.push(line) })),
    ).toBe(true);
    const text = lines.join("\n");
    expect(text.match(/^ {3}ok: /gm)).toHaveLength(5);
    expect(text).toEndWith("\nPASS: 5 checks");
    expect(text).toContain("   batch sizes     1 ×40\n");
    expect(text).toContain("   claims          19\n");
    expect(text).toContain("   batch sizes     1 1 2 2 4 4 8 8 16 ×10 10\n");
    expect(text).toContain("   job time        10.0 ms measured, so 250 ms hold 25\n");
    expect(text).toContain("   batch sizes     1 ×10\n");
    expect(text).toContain("   job time        300.0 ms measured, so 250 ms hold 1\n");
    for (const name of new Set(cleared)) {
      const queue = broker.queue(name, { leaseMs: 1_000, requestTimeoutMs: 100, dedupeWindowMs: 1_000 });
      await queue.open();
      expect(await queue.sizes!()).toEqual({ ready: 0, delayed: 0, held: 0, dead: 0, paused: false });
    }
    await broker.close();
  });

  test("slower jobs make smaller batches: 18 ms hold 13", async () => {
    await using folder = await scratch();
    const platform = new SimulatedPlatform();
    const broker = await connect(platform, folder.file("q.sqlite"));
    const phase: Phase = { ...PHASES.b, jobMs: 18 };
    const { sizes } = await platform.run(runPhase(phase, { broker, platform, print: () => {} }));
    expect(runLengths(sizes)).toBe("1 1 2 2 4 4 8 8 13 ×13 1");
    await broker.close();
  });
});

test("a worker that does not batch fails the demo's checks", () => {
  const failed = (phase: Phase, sizes: number[]) =>
    checksOf(phase, { sizes, averageMs: 10 }).filter((check) => !check.holds).length;
  expect(
    failed(
      PHASES.a,
      Array.from({ length: 40 }, () => 1),
    ),
  ).toBe(0);
  expect(failed(PHASES.a, [2, ...Array.from({ length: 38 }, () => 1)])).toBe(1);
  const good = [1, 1, 2, 2, 4, 4, 8, 8, ...Array.from({ length: 10 }, () => 16), 10];
  expect(failed(PHASES.b, good)).toBe(0);
  expect(
    failed(
      PHASES.b,
      Array.from({ length: 200 }, () => 1),
    ),
  ).toBe(2);
  expect(failed(PHASES.b, [1, 1, 2, 2, 4, 4, 8, 8, 17, 153])).toBe(1);
  expect(failed(PHASES.b, [1, 1, 2, 2, 4, 4, 8, 8, ...Array.from({ length: 17 }, () => 10)])).toBe(1);
  expect(
    failed(
      PHASES.c,
      Array.from({ length: 10 }, () => 1),
    ),
  ).toBe(0);
  expect(failed(PHASES.c, [1, 1, 2, 6])).toBe(1);
});

test("jobs of one lease are one claim, and equal sizes are told together", () => {
  expect(sizesOf(["a", "b", "b", "c", "a"])).toEqual([2, 2, 1]);
  expect(runLengths([1, 1, 2, 2, 2, 3])).toBe("1 1 2 ×3 3");
  expect(runLengths([])).toBe("");
});
