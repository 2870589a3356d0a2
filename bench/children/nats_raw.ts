/**
 * The NATS client by itself, as fast as it goes: one pull after the other on one inbox. It keeps what a worker cannot do without: each message's body,
 * headers and count of hand-outs are read by the library's own means and handed out, and each batch's acks are known to be read by the server (a flush that
 * the next pull does not wait for). It keeps no lease, runs no handler but a check, knows no failure, and settles nothing again: the floor under Eddy's loop. It works on a stream that Eddy made and filled, so that the
 * messages are the same.
 *
 * @module
 */
import { AckPolicy, connect, type MsgHdrs, type NatsConnection } from "nats.ws";
import { NatsBroker } from "../../adapters/nats/mod.ts";
import { fill, openQueue } from "../support/brokers.ts";
import { cpuMs, params, tell } from "../support/contender.ts";
import { collectGarbage, useSteadyWebSocket } from "../support/here.ts";

export interface NatsRawParams {
  readonly url: string;
  readonly jobs: number;
  readonly warmUp: number;
  readonly batch: number;
}

const { url, jobs, warmUp, batch } = params<NatsRawParams>();
const encoder = new TextEncoder();
const ACK = encoder.encode("+ACK");

interface Delivery {
  readonly body: unknown;
  readonly headers: MsgHdrs | undefined;
  /** How often the server has handed it out: a worker must know jobs that may have killed another. */
  readonly delivered: number;
}

interface Result {
  readonly ms: number;
  /** The processor time that this process used meanwhile, in milliseconds. */
  readonly cpuMs: number;
}

async function run(nc: NatsConnection, name: string, count: number): Promise<Result> {
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
  let cpuBefore = 0;
  const flushes: Promise<void>[] = [];
  const handle = (delivery: Delivery) => {
    if (!(delivery.delivered >= 1) || delivery.headers === undefined || delivery.body === undefined) {
      done.reject(new Error("Cannot go on: a message came without its body, its headers or its count"));
    }
  };
  const subscription = nc.subscribe(inbox, {
    callback(_error, message) {
      const { reply } = message;
      // A status ends a pull; it is no message.
      if (!reply) return;
      if (firstAt === 0) {
        cpuBefore = cpuMs();
        firstAt = performance.now();
      }
      const tokens = reply.split(".");
      // An older and a newer form: with the domain and the account.
      const delivered = Number(tokens[tokens.length === 9 ? 4 : 6]);
      handle({ body: message.json(), headers: message.headers, delivered });
      nc.publish(reply, ACK);
      left -= 1;
      inBatch += 1;
      if (left === 0) done.resolve();
      else if (inBatch === batch) {
        inBatch = 0;
        flushes.push(nc.flush());
        pull();
      }
    },
  });
  pull();
  await done.promise;
  flushes.push(nc.flush());
  await Promise.all(flushes);
  const ms = performance.now() - firstAt;
  const usedMs = cpuMs() - cpuBefore;
  subscription.unsubscribe();
  await jsm.streams.delete(stream);
  return { ms, cpuMs: usedMs };
}

await useSteadyWebSocket();
const nc = await connect({ servers: url });
const unique = crypto.randomUUID();
if (warmUp > 0) await run(nc, `warm-${unique}`, Math.ceil(warmUp / batch) * batch);
collectGarbage();
tell(await run(nc, `work-${unique}`, Math.ceil(jobs / batch) * batch));
