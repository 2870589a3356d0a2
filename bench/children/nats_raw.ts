/**
 * The NATS client by itself, as fast as it goes: one pull after the other on one inbox, each message acked as it comes. No leases, no
 * handlers, no checks: the floor under Eddy's loop. It works on a stream that Eddy made and filled, so that the messages are the same.
 *
 * @module
 */
import { AckPolicy, connect, type NatsConnection } from "nats.ws";
import { NatsBroker } from "../../adapters/nats/mod.ts";
import { fill, openQueue } from "../support/brokers.ts";
import { params, tell } from "../support/contender.ts";

export interface NatsRawParams {
  readonly url: string;
  readonly jobs: number;
  readonly warmUp: number;
  readonly batch: number;
}

const { url, jobs, warmUp, batch } = params<NatsRawParams>();
const encoder = new TextEncoder();
const ACK = encoder.encode("+ACK");

async function run(nc: NatsConnection, name: string, count: number): Promise<number> {
  const broker = new NatsBroker({ url });
  await fill(await openQueue(broker, name), count);
  await broker.close();
  const stream = `EDDY_JOBS_${name}`;
  const jsm = await nc.jetstreamManager();
  await jsm.consumers.add(stream, {
    durable_name: "raw",
    ack_policy: AckPolicy.Explicit,
    ack_wait: 30_000_000_000,
    max_ack_pending: -1,
    filter_subject: `eddy.jobs.${name}`,
  });
  const inbox = `raw.${crypto.randomUUID()}`;
  const next = `$JS.API.CONSUMER.MSG.NEXT.${stream}.raw`;
  const request = encoder.encode(JSON.stringify({ batch, no_wait: true, expires: 5_000_000_000 }));
  const pull = () => nc.publish(next, request, { reply: inbox });
  const done = Promise.withResolvers<void>();
  let left = count;
  let inBatch = 0;
  let firstAt = 0;
  const subscription = nc.subscribe(inbox, {
    callback(_error, { reply }) {
      // A status ends a pull; it is no message.
      if (!reply) return;
      if (firstAt === 0) firstAt = performance.now();
      nc.publish(reply, ACK);
      left -= 1;
      inBatch += 1;
      if (left === 0) done.resolve();
      else if (inBatch === batch) {
        inBatch = 0;
        pull();
      }
    },
  });
  pull();
  await done.promise;
  await nc.flush();
  const ms = performance.now() - firstAt;
  subscription.unsubscribe();
  await jsm.streams.delete(stream);
  return ms;
}

const nc = await connect({ servers: url });
const unique = crypto.randomUUID();
if (warmUp > 0) await run(nc, `warm-${unique}`, Math.ceil(warmUp / batch) * batch);
Bun.gc(true);
tell({ ms: await run(nc, `work-${unique}`, Math.ceil(jobs / batch) * batch) });
