/**
 * The part of `loopback` that runs on NATS: Eddy's loop beside the raw client.
 *
 * @module
 */
import { startNats } from "../../tests/support/nats_server.ts";
import type { EddyParams } from "../children/eddy.ts";
import type { NatsRawParams } from "../children/nats_raw.ts";
import { alternate } from "../support/alternate.ts";
import { atLeast, type Context } from "../support/bench.ts";
import { type ChildOptions, DENO, runChild } from "../support/child.ts";
import { median } from "../support/figures.ts";

const RUNTIMES: readonly { name: string; options: ChildOptions }[] = [
  { name: "Bun", options: {} },
  { name: "Deno", options: { command: [...DENO, "--allow-env", "--allow-read", "--v8-flags=--expose-gc"] } },
];

interface Took {
  readonly ms: number;
  readonly cpuMs: number;
}

export async function natsLoopback(context: Context): Promise<void> {
  const server = await startNats();
  try {
    const cases = RUNTIMES.flatMap((runtime) => [1, 16, 256].map((batch) => ({ ...runtime, batch })));
    for (const { name, options, batch } of cases) {
      context.progress(`nats on ${name}, batch ${batch}`);
      // Whole batches: a pull that asks for more than there is waits.
      const jobs = context.pick(400, 120, 2) * (batch === 1 ? 64 : 256);
      // As long as engines take to compile what runs often: half of that, and the compiling would be measured.
      const warmUp = context.pick(60_000, 30_000, 20);
      const eddy: EddyParams = {
        broker: { kind: "nats", url: server.url },
        jobs,
        warmUp,
        handler: { prefetch: batch },
        jobMs: 0,
      };
      const raw: NatsRawParams = { url: server.url, jobs, warmUp, batch };
      const [ours, theirs] = (await alternate(context.rounds, [
        () => runChild<Took>("eddy.ts", eddy, options),
        () => runChild<Took>("nats_raw.ts", raw, options),
      ])) as [Took[], Took[]];
      const [rate, rawRate] = [ours, theirs].map((all) =>
        median(all.map(({ ms }) => (jobs / ms) * 1000)),
      ) as [number, number];
      const [cpu, rawCpu] = [ours, theirs].map((all) =>
        median(all.map(({ cpuMs }) => (cpuMs / jobs) * 1000)),
      ) as [number, number];
      const what = `nats on ${name}, prefetch ${batch}, one slot`;
      context.row({
        case: what,
        value: rate,
        unit: "jobs/s",
        against: `raw client, pulls of ${batch}: ${Math.round(rawRate).toLocaleString("en-US")}`,
        ratio: rate / rawRate,
        bar: atLeast(rate / rawRate, batch === 1 ? 0.9 : 0.95, " ×"),
      });
      context.row({
        case: `${what}: processor time`,
        value: cpu,
        unit: "µs a job",
        against: `raw client: ${rawCpu.toFixed(1)}`,
        ratio: cpu / rawCpu,
      });
    }
  } finally {
    await server.stop();
  }
  context.note(
    "nats: one nats-server for both, the same messages in streams on disk, over WebSocket; on each runtime both sides run on it; on Deno over a WebSocket without Nagle's delay. The raw client keeps what a worker cannot do without: it reads each message's body, headers and count of hand-outs by the library's own means and hands them out, and a flush behind each batch's acks, which the next pull does not wait for, says that the server has read them. It pulls the next batch when the last one is there, and does nothing else. Processor time is that of the client's process.",
  );
}
