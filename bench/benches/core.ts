/**
 * What the loop itself costs: time and memory a job, on the broker that costs least.
 *
 * @module
 */
import type { BareParams } from "../children/bare.ts";
import type { EddyParams } from "../children/eddy.ts";
import type { MemoryResult } from "../children/memory.ts";
import { alternate } from "../support/alternate.ts";
import { atMost, type Bench, type Context } from "../support/bench.ts";
import { runChild } from "../support/child.ts";
import { median } from "../support/figures.ts";

const MOST_US = 3;
const MB = 1024 * 1024;

async function time(context: Context): Promise<void> {
  for (const batch of [1, 16, 256]) {
    context.progress(`time, batch ${batch}`);
    const jobs = context.pick(500_000, 200_000, 500);
    const warmUp = context.pick(20_000, 10_000, 50);
    const eddy: EddyParams = {
      broker: { kind: "memory" },
      jobs,
      warmUp,
      handler: { prefetch: batch },
      jobMs: 0,
    };
    const bare: BareParams = { broker: { kind: "memory" }, jobs, warmUp, batch };
    const [loop, broker] = (
      await alternate(context.rounds, [
        async () => (await runChild<{ ms: number }>("eddy.ts", eddy)).ms,
        async () => (await runChild<{ ms: number }>("bare.ts", bare)).ms,
      ])
    ).map((times) => (median(times) / jobs) * 1000) as [number, number];
    context.row({
      case: `loop and memory broker, batch ${batch}`,
      value: loop,
      unit: "µs/job",
      against: "the memory broker alone",
      ratio: loop / broker,
    });
    context.row({
      case: `loop alone (the broker's time taken off), batch ${batch}`,
      value: loop - broker,
      unit: "µs/job",
      // A batch is what the loop is made for; a job a claim pays a claim a job.
      ...(batch === 16 ? { bar: atMost(loop - broker, MOST_US, " µs") } : {}),
    });
  }
}

export const core: Bench = {
  name: "core",
  title: "the loop by itself: time and bytes a job, memory over a million jobs",
  async run(context) {
    await time(context);
    context.progress("bytes");
    const counted = context.pick(100_000, 50_000, 500);
    const [bytes] = await alternate(context.rounds, [
      async () =>
        (await runChild<{ bytes: number }>("bytes.ts", { jobs: counted }, { env: { BUN_JSC_useGC: "0" } }))
          .bytes / counted,
    ]);
    context.row({
      case: "allocated, memory broker and async handler included, batch 16",
      value: median(bytes as number[]),
      unit: "bytes/job",
    });
    const jobs = context.pick(1_000_000, 300_000, 5_000);
    context.progress("memory");
    const { heapEarly, heapLate, rssEarly, rssLate } = await runChild<MemoryResult>("memory.ts", { jobs });
    context.row({
      case: `heap after ${(jobs / 10).toLocaleString("en-US")} jobs`,
      value: heapEarly / MB,
      unit: "MiB",
    });
    context.row({
      case: `heap after ${jobs.toLocaleString("en-US")} jobs`,
      value: heapLate / MB,
      unit: "MiB",
      against: `after a tenth of them`,
      ratio: heapLate / heapEarly,
    });
    context.row({
      case: `resident after ${jobs.toLocaleString("en-US")} jobs`,
      value: rssLate / MB,
      unit: "MiB",
      against: `after a tenth of them`,
      ratio: rssLate / rssEarly,
    });
    context.note(
      "One slot, an async handler that does nothing. The memory broker remembers ended leases and request ids for a minute, as the port asks for; what the heap grows by within a minute is that.",
    );
  },
};
