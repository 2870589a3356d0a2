/**
 * The NATS client by itself, as fast as it goes: one pull after the other on one inbox, each message acked as it comes. No leases, no
 * handlers, no checks: the floor under Eddy's loop.
 *
 * @module
 */
import { AckPolicy, connect, type NatsConnection, RetentionPolicy, StorageType, StringCodec } from "nats.ws";
import { params, tell } from "../support/contender.ts";

export interface NatsRawParams {
  readonly url: string;
  readonly jobs: number;
  readonly warmUp: number;
  readonly batch: number;
}

const { url, jobs, warmUp, batch } = params<NatsRawParams>();
const codec = StringCodec();
const ACK = codec.encode("+ACK");

async function run(nc: NatsConnection, stream: string, count: number): Promise<number> {
  const jsm = await nc.jetstreamManager();
  await jsm.streams.add({
    name: stream,
    subjects: [stream],
    retention: RetentionPolicy.Workqueue,
    storage: StorageType.File,
  });
  await jsm.consumers.add(stream, {
    durable_name: "raw",
    ack_policy: AckPolicy.Explicit,
    max_ack_pending: 10_000,
  });
  const js = nc.jetstream();
  for (let at = 0; at < count; at += 500) {
    await Promise.all(
      Array.from({ length: Math.min(500, count - at) }, (_, n) =>
        js.publish(stream, codec.encode(`{"n":${at + n}}`), { msgID: crypto.randomUUID() }),
      ),
    );
  }
  const inbox = `raw.${crypto.randomUUID()}`;
  const next = `$JS.API.CONSUMER.MSG.NEXT.${stream}.raw`;
  const request = codec.encode(JSON.stringify({ batch, no_wait: true, expires: 2_000_000_000 }));
  const done = Promise.withResolvers<void>();
  let left = count;
  let inBatch = 0;
  let firstAt = 0;
  const subscription = nc.subscribe(inbox, {
    callback(_error, message) {
      // A status ends a pull; it is no message.
      if (message.headers !== undefined && message.headers.code !== 0) {
        inBatch = 0;
        if (left > 0) nc.publish(next, request, { reply: inbox });
        return;
      }
      if (firstAt === 0) firstAt = performance.now();
      nc.publish(message.reply as string, ACK);
      left -= 1;
      inBatch += 1;
      if (left === 0) done.resolve();
      else if (inBatch === batch) {
        inBatch = 0;
        nc.publish(next, request, { reply: inbox });
      }
    },
  });
  nc.publish(next, request, { reply: inbox });
  await done.promise;
  await nc.flush();
  const ms = performance.now() - firstAt;
  subscription.unsubscribe();
  await jsm.streams.delete(stream);
  return ms;
}

const nc = await connect({ servers: url });
if (warmUp > 0) await run(nc, "RAWWARM", warmUp);
Bun.gc(true);
tell({ ms: await run(nc, "RAWWORK", jobs) });
