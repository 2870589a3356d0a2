/**
 * How soon a claim over NATS answers: prints milliseconds.
 *
 * `bun tests/bench/nats_latency.ts`
 *
 * @module
 */
import { NatsBroker } from "../../adapters/nats/mod.ts";
import { job, leaseId, put } from "../support/conformance_steps.ts";
import { startNats } from "../support/nats_server.ts";

const ROUNDS = 20;
const WAIT_MS = 1_000;

const server = await startNats();
const settings = { leaseMs: 30_000, requestTimeoutMs: 5_000, dedupeWindowMs: 60_000 };
const worker = new NatsBroker({ url: server.url });
const producer = new NatsBroker({ url: server.url });
const queue = worker.queue("latency", settings);
const other = producer.queue("latency", settings);
await queue.open();
await other.open();

const shown = (ms: readonly number[]) => {
  const sorted = [...ms].sort((a, b) => a - b);
  const at = (share: number) => (sorted[Math.floor((sorted.length - 1) * share)] ?? 0).toFixed(2);
  return `min ${at(0)}  median ${at(0.5)}  max ${at(1)}`;
};
const claim = (waitMs: number) => queue.claim({ leaseId: leaseId(), max: 16, waitMs });
const ackAll = async (reply: Awaited<ReturnType<typeof claim>>) => {
  await queue.settle(reply.deliveries.map((delivery) => ({ delivery, verdict: { kind: "ack" } as const })));
};
await claim(0);

const three: number[] = [];
for (let round = 0; round < ROUNDS; round++) {
  await put(other, "a", "b", "c");
  const from = performance.now();
  const reply = await claim(WAIT_MS);
  three.push(performance.now() - from);
  if (reply.deliveries.length !== 3) throw new Error(`${reply.deliveries.length} of 3 came`);
  await ackAll(reply);
}
console.log(`3 of 16 there: all three after (ms)            ${shown(three)}   (bar: 20)`);

for (const priority of ["normal", "high"] as const) {
  const late: number[] = [];
  const waited: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const from = performance.now();
    const waiting = claim(WAIT_MS);
    await Bun.sleep(300);
    const published = performance.now();
    await put(other, job("a", { priority }));
    const reply = await waiting;
    late.push(performance.now() - published);
    waited.push(performance.now() - from);
    if (reply.deliveries.length !== 1) throw new Error("it did not come");
    await ackAll(reply);
  }
  const name = `${priority} one published after 300 ms: after it (ms)`.padEnd(47);
  console.log(`${name}${shown(late)}   (bar: 20)`);
  console.log(`${"the claim took (ms)".padStart(46)} ${shown(waited)}`);
}

const none: number[] = [];
for (let round = 0; round < 5; round++) {
  const from = performance.now();
  const reply = await claim(WAIT_MS);
  none.push(performance.now() - from);
  if (reply.deliveries.length !== 0) throw new Error("something came");
}
console.log(`none at all, waitMs ${WAIT_MS}: ends after (ms)        ${shown(none)}   (bar: ${WAIT_MS} ± 50)`);

await worker.close();
await producer.close();
await server.stop();
