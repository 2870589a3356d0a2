/**
 * Pull and ack rates over NATS: Eddy's loop beside the same client by itself, in turns on one server. Prints jobs a second and the ratio.
 *
 * `bun tests/bench/nats_rate.ts [jobs of the largest run]`
 *
 * @module
 */
import { connect, type Msg } from "nats.ws";
import { NatsBroker } from "../../adapters/nats/mod.ts";
import { bunPlatform } from "../../runtimes/bun/platform.ts";
import { defineWorker, queue, startWorker } from "../../src/mod.ts";
import { idsOf, job } from "../support/conformance_steps.ts";
import { startNats } from "../support/nats_server.ts";

const MOST = Number(process.argv[2] ?? 60_000);
const ROUNDS = Number(process.argv[3] ?? 5);
const server = await startNats();
const settings = { leaseMs: 30_000, requestTimeoutMs: 5_000, dedupeWindowMs: 60_000 };
const encoder = new TextEncoder();
let serial = 0;

async function fill(name: string, count: number): Promise<void> {
  const broker = new NatsBroker({ url: server.url });
  const queue = broker.queue(name, settings);
  await queue.open();
  for (let at = 0; at < count; at += 1000) {
    const some = idsOf(`${at}-`, Math.min(1000, count - at)).map((id) => job(id, { body: `{"n":"${id}"}` }));
    await queue.enqueue(`fill-${at}`, some);
  }
  await broker.close();
}

/** The client alone: one pull after the other, each message acked, what was sent flushed at the end. */
async function raw(count: number, batch: number): Promise<number> {
  serial += 1;
  const name = `raw-${serial}`;
  await fill(name, count);
  const stream = `EDDY_JOBS_${name}`;
  const nc = await connect({ servers: server.url, reconnect: false });
  await nc.request(
    `$JS.API.CONSUMER.DURABLE.CREATE.${stream}.raw`,
    JSON.stringify({
      stream_name: stream,
      config: {
        durable_name: "raw",
        ack_policy: "explicit",
        ack_wait: 30e9,
        max_ack_pending: -1,
        filter_subject: `eddy.jobs.${name}`,
      },
    }),
  );
  const ACK = encoder.encode("+ACK");
  let left = count;
  let got = 0;
  const done = Promise.withResolvers<void>();
  const pull = () =>
    nc.publish(
      `$JS.API.CONSUMER.MSG.NEXT.${stream}.raw`,
      `{"batch":${batch},"no_wait":true,"expires":5000000000}`,
      { reply: "raw.inbox.x" },
    );
  nc.subscribe("raw.inbox.*", {
    callback(_error, message: Msg) {
      const { reply } = message;
      if (!reply) return;
      nc.publish(reply, ACK);
      got += 1;
      left -= 1;
      if (left === 0) done.resolve();
      else if (got === batch) {
        got = 0;
        pull();
      }
    },
  });
  const from = performance.now();
  pull();
  await done.promise;
  await nc.flush();
  const ms = performance.now() - from;
  await nc.close();
  return (count / ms) * 1000;
}

async function loop(count: number, batch: number): Promise<number> {
  serial += 1;
  const name = `loop-${serial}`;
  await fill(name, count);
  const broker = new NatsBroker({ url: server.url });
  let acked = 0;
  let firstAt = 0;
  const done = Promise.withResolvers<number>();
  const handled = queue(name).handle(
    () => {
      if (firstAt === 0) firstAt = performance.now();
    },
    { prefetch: batch },
  );
  const worker = await startWorker(defineWorker({ queues: [handled] }), {
    broker,
    platform: bunPlatform(),
    on: (event) => {
      if (event.type !== "settled") return;
      acked += 1;
      if (acked === count) done.resolve(performance.now());
    },
  });
  const ms = (await done.promise) - firstAt;
  await worker.stop();
  await broker.close();
  return (count / ms) * 1000;
}

const median = (numbers: number[]) => numbers.sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
for (const [batch, count] of [
  [1, Math.ceil(MOST / 6)],
  [16, MOST],
  [256, MOST],
] as const) {
  const raws: number[] = [];
  const loops: number[] = [];
  const ratios: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const both = round % 2 ? [await raw(count, batch), await loop(count, batch)] : [0, 0];
    if (round % 2 === 0) {
      both[1] = await loop(count, batch);
      both[0] = await raw(count, batch);
    }
    // The first round warms up.
    if (round === 0) continue;
    raws.push(both[0] as number);
    loops.push(both[1] as number);
    ratios.push((both[1] as number) / (both[0] as number));
  }
  const k = (rate: number) => `${(rate / 1000).toFixed(1)} k/s`;
  console.log(
    `batch ${String(batch).padEnd(4)} raw ${k(median(raws)).padEnd(10)} loop ${k(median(loops)).padEnd(10)} ratio ${median(ratios).toFixed(2)}   (bar: 0.90)`,
  );
}
await server.stop();
