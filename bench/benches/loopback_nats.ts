/**
 * The part of `loopback` that runs on NATS: Eddy's loop beside the raw client.
 *
 * @module
 */
import { startNats } from "../../tests/support/nats_server.ts";
import type { EddyParams } from "../children/eddy.ts";
import type { NatsRawParams } from "../children/nats_raw.ts";
import { atLeast, type Context } from "../support/bench.ts";
import { runChild } from "../support/child.ts";
import { race } from "../support/rates.ts";

export async function natsLoopback(context: Context): Promise<void> {
  const server = await startNats();
  try {
    for (const batch of [1, 16, 256]) {
      context.progress(`nats, batch ${batch}`);
      // Whole batches: a pull that asks for more than there is waits.
      const jobs = context.pick(400, 120, 2) * (batch === 1 ? 64 : 256);
      const warmUp = context.pick(5_000, 5_000, 20);
      const eddy: EddyParams = {
        broker: { kind: "nats", url: server.url },
        jobs,
        warmUp,
        handler: { prefetch: batch },
        jobMs: 0,
      };
      const raw: NatsRawParams = { url: server.url, jobs, warmUp, batch };
      const [ours, theirs] = (await race(context.rounds, [
        { jobs, run: () => runChild<{ ms: number }>("eddy.ts", eddy) },
        { jobs, run: () => runChild<{ ms: number }>("nats_raw.ts", raw) },
      ])) as [number, number];
      context.row({
        case: `nats, prefetch ${batch}, one slot`,
        value: ours,
        unit: "jobs/s",
        against: `raw client, pulls of ${batch}: ${Math.round(theirs).toLocaleString("en-US")}`,
        ratio: ours / theirs,
        bar: atLeast(ours / theirs, batch === 1 ? 0.9 : 0.95, " ×"),
      });
    }
  } finally {
    await server.stop();
  }
  context.note(
    "nats: one nats-server for both, the same messages in streams on disk, over WebSocket. The raw client pulls the next batch when the last one is there, acks without waiting for an answer, and does nothing else: it reads neither headers nor bodies. Acks of both are known to be read by the answer to the pull behind them; the last ones by an answer of their own.",
  );
}
