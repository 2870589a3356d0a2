/** What only JetStream's pulls raise: statuses, messages that come late, one request a claim, and whatever others publish. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { bunPlatform } from "../../runtimes/bun/platform.ts";
import type { BrokerQueue } from "../../src/broker.ts";
import { defineWorker, queue as named, startWorker } from "../../src/mod.ts";
import { ACK, drain, ids, idsOf, job, leaseId, put, settle, take } from "../support/conformance_steps.ts";
import { natsForFile } from "../support/nats_fixture.ts";
import { tapped } from "../support/nats_tap.ts";
import { WebSocketProxy } from "../support/ws_proxy.ts";

setDefaultTimeout(30_000);

const nats = natsForFile();

async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`Waited ten seconds in vain until ${what}`);
    await Bun.sleep(2);
  }
}

test("a claim is one pull, whatever it brings", async () => {
  const name = nats.name();
  let pulls = 0;
  const queue = await nats.open(name, {
    openWebSocket: tapped((text) => {
      pulls += text.split("CONSUMER.MSG.NEXT").length - 1;
    }),
  });
  await put(queue, ...idsOf("a", 100));
  for (let claims = 1; claims <= 7; claims++) {
    await settle(queue, await take(queue, 16), ACK);
    expect(pulls).toBe(claims);
  }
  // One that finds nothing, and may not wait, looks once more before it says so.
  expect(await take(queue)).toEqual([]);
  expect(pulls).toBe(9);
});

test("a status that ends a pull is an error, never a job; the consumer it told of is made anew", async () => {
  const name = nats.name();
  const queue = await nats.open(name);
  expect(await take(queue)).toEqual([]);
  const waiting = queue.claim({ leaseId: leaseId(), max: 4, waitMs: 10_000 });
  await until("the pull waits", async () => {
    const info = await nats.operator.api<{ num_waiting: number }>(
      `CONSUMER.INFO.EDDY_JOBS_${name}.eddy_normal`,
    );
    return info.num_waiting === 1;
  });
  const failed = waiting.then(
    () => undefined,
    (error: unknown) => error,
  );
  await nats.operator.api(`CONSUMER.DELETE.EDDY_JOBS_${name}.eddy_normal`);
  expect(await failed).toMatchObject({ name: "BrokerError", verb: "claim" });
  await put(queue, "a");
  expect(ids(await take(queue))).toEqual(["a"]);
});

test("a consumer that vanished under an idle worker is made anew", async () => {
  const name = nats.name();
  const queue = await nats.open(name);
  await put(queue, "a");
  await settle(queue, await take(queue), ACK);
  await nats.operator.api(`CONSUMER.DELETE.EDDY_JOBS_${name}.eddy_normal`);
  await put(queue, "b");
  expect(ids(await take(queue))).toEqual(["b"]);
});

test("more pulls than the consumer lets wait end in an error, and none is lost", async () => {
  const name = nats.name();
  await (await nats.open(name)).open();
  await nats.operator.api(`CONSUMER.DURABLE.CREATE.EDDY_JOBS_${name}.eddy_normal`, {
    stream_name: `EDDY_JOBS_${name}`,
    config: {
      durable_name: "eddy_normal",
      filter_subject: `eddy.jobs.${name}`,
      ack_policy: "explicit",
      ack_wait: 60e9,
      max_waiting: 1,
    },
  });
  const [one, two] = [await nats.open(name), await nats.open(name)];
  const waiting = one.claim({ leaseId: leaseId(), max: 1, waitMs: 10_000 });
  await until("the pull waits", async () => {
    const info = await nats.operator.api<{ num_waiting: number }>(
      `CONSUMER.INFO.EDDY_JOBS_${name}.eddy_normal`,
    );
    return info.num_waiting === 1;
  });
  await expect(two.claim({ leaseId: leaseId(), max: 1, waitMs: 1_000 })).rejects.toThrow("409");
  await put(two, "a");
  expect(ids((await waiting).deliveries)).toEqual(["a"]);
});

/** A claim whose messages are on their way when it is given up: the network stands still. */
async function claimGivenUp(id: string) {
  const name = nats.name();
  const proxy = await WebSocketProxy.start(nats.server.webSocketPort);
  let pulls = 0;
  const queue = await nats.open(
    name,
    {
      url: proxy.url,
      pongWithinMs: 20_000,
      openWebSocket: tapped((text) => {
        if (text.includes("MSG.NEXT")) pulls += 1;
      }),
    },
    { requestTimeoutMs: 1_000 },
  );
  expect(await take(queue)).toEqual([]);
  const before = pulls;
  const waiting = queue.claim({ leaseId: id, max: 4, waitMs: 200 });
  await until("the pull waits", async () => {
    const info = await nats.operator.api<{ num_waiting: number }>(
      `CONSUMER.INFO.EDDY_JOBS_${name}.eddy_normal`,
    );
    return info.num_waiting === 1 && pulls === before + 1;
  });
  proxy.freeze();
  await nats.operator.publish(`eddy.jobs.${name}`, "late");
  await expect(waiting).rejects.toMatchObject({ name: "BrokerError", verb: "claim" });
  return { name, queue, proxy };
}

test("messages of a claim that was given up answer its copy", async () => {
  const id = leaseId();
  const { queue, proxy } = await claimGivenUp(id);
  const again = queue.claim({ leaseId: id, max: 4, waitMs: 0 });
  proxy.thaw();
  const { deliveries } = await again;
  expect(deliveries.map((one) => [one.body, one.attempt])).toEqual([["late", 1]]);
  expect(await settle(queue, deliveries, ACK)).toEqual(["done"]);
  await proxy.stop();
});

test("messages of a claim that was given up and abandoned go back at once, uncharged", async () => {
  const id = leaseId();
  const { name, queue, proxy } = await claimGivenUp(id);
  await queue.abandon?.([id]);
  const other = await nats.open(name);
  expect((await other.sizes?.())?.held).toBe(1);
  proxy.thaw();
  await until("it is back", async () => (await other.sizes?.())?.ready === 1);
  const deliveries = await take(other);
  expect(deliveries.map((one) => [one.body, one.attempt, one.suspect])).toEqual([["late", 1, false]]);
  expect(await settle(other, deliveries, ACK)).toEqual(["done"]);
  expect(await other.sizes?.()).toEqual({ ready: 0, delayed: 0, held: 0, dead: 0, paused: false });
  await proxy.stop();
});

test("messages of a claim that was given up and came before its copy answer it, once", async () => {
  const id = leaseId();
  const { name, queue, proxy } = await claimGivenUp(id);
  proxy.thaw();
  // What comes over this connection from now on comes behind the late message.
  await put(queue, job("behind", { delayMs: 3_600_000 }));
  const { deliveries } = await queue.claim({ leaseId: id, max: 4, waitMs: 0 });
  expect(deliveries.map((one) => [one.body, one.attempt, one.suspect])).toEqual([["late", 1, false]]);
  expect(await settle(queue, deliveries, ACK)).toEqual(["done"]);
  const state = await nats.operator.consumer(`EDDY_JOBS_${name}`, "eddy_normal");
  expect([state.num_pending, state.num_ack_pending]).toEqual([0, 0]);
  await proxy.stop();
});

test("a job handed out again sooner than any lease can have run out was in nobody's hands: no suspect, no attempt charged", async () => {
  const name = nats.name();
  const queue = await nats.open(name);
  await put(queue, "a");
  expect(await take(queue, 1)).toHaveLength(1);
  await put(queue, "b");
  // As the server does with what it could not hand over: it counts, and hands out again at once.
  const next = `$JS.API.CONSUMER.MSG.NEXT.EDDY_JOBS_${name}.eddy_normal`;
  for (let round = 0; round < 3; round++) {
    const reply = await new Promise<string>((resolve) => {
      const inbox = `nobody.${name}.${round}`;
      nats.operator.nc.subscribe(inbox, {
        max: 1,
        callback: (_error, message) => resolve(message.reply ?? ""),
      });
      nats.operator.nc.publish(next, '{"batch":1}', { reply: inbox });
    });
    nats.operator.nc.publish(reply, "-NAK");
    await nats.operator.nc.flush();
  }
  const deliveries = await take(queue);
  expect(deliveries.map((one) => [one.id, one.attempt, one.suspect])).toEqual([["b", 1, false]]);
});

test("whatever is published to the subject is a job: body, headers and id as they come", async () => {
  const name = nats.name();
  const queue = await nats.open(name);
  await nats.operator.publish(`eddy.jobs.${name}`, '{"to":"ada"}');
  await nats.operator.publish(`eddy.jobs.${name}.high`, "urgent");
  const { headers } = await import("nats.ws");
  const mine = headers();
  mine.set("Content-Type", "text/plain");
  mine.set("Nats-Msg-Id", "order-17");
  mine.set("X-Unusual.Name", "left out");
  await nats.operator.nc.request(`eddy.jobs.${name}`, new Uint8Array([0, 255]), {
    headers: mine,
    timeout: 5_000,
  });
  const deliveries = await take(queue);
  expect(deliveries.map((one) => [one.priority, one.body, one.attempt])).toEqual([
    ["high", "urgent", 1],
    ["normal", '{"to":"ada"}', 1],
    ["normal", new Uint8Array([0, 255]), 1],
  ]);
  expect({ ...deliveries[2]?.headers }).toEqual({ "content-type": "text/plain" });
  expect(deliveries[2]?.id).toBe("order-17");
  expect(deliveries[1]?.id).toMatch(/^seq:\d+$/);
  await settle(queue, deliveries, { kind: "retry", delayMs: 0 });
  const again = await take(queue);
  expect(again.map((one) => [one.id, one.attempt]).sort()).toEqual(
    deliveries.map((one) => [one.id, 2]).sort(),
  );
});

test("a level that there is not is taken by nobody, and its publisher told so", async () => {
  const name = nats.name();
  const queue = await nats.open(name);
  for (const slip of ["hihg", "urgent", "a.b", "later.soon", "returned", "state.a.b"]) {
    const answer = nats.operator.nc.request(`eddy.jobs.${name}.${slip}`, "lost?").then(
      () => "stored",
      (error: { code?: string }) => error.code,
    );
    expect([slip, await answer]).toEqual([slip, "503"]);
  }
  for (const tail of ["", ".high", ".low"]) {
    const answer = await nats.operator.nc.request(`eddy.jobs.${name}${tail}`, `"${tail}"`);
    expect(answer.json()).toMatchObject({ stream: `EDDY_JOBS_${name}` });
  }
  expect(await queue.sizes?.()).toMatchObject({ ready: 3 });
});

test("an idle claim hears of an urgent job that somebody else published", async () => {
  const name = nats.name();
  const queue = await nats.open(name);
  expect(await take(queue)).toEqual([]);
  const waiting = queue.claim({ leaseId: leaseId(), max: 4, waitMs: 15_000 });
  await nats.operator.publish(`eddy.jobs.${name}.high`, "urgent");
  expect((await waiting).deliveries.map((one) => one.body)).toEqual(["urgent"]);
});

test("an idle claim brings a delayed job when it is due", async () => {
  const name = nats.name();
  const queue = await nats.open(name);
  expect(await take(queue)).toEqual([]);
  const waiting = queue.claim({ leaseId: leaseId(), max: 4, waitMs: 15_000 });
  const from = performance.now();
  await put(await nats.open(name), job("a", { delayMs: 300 }));
  expect(ids((await waiting).deliveries)).toEqual(["a"]);
  expect(performance.now() - from).toBeGreaterThanOrEqual(300);
});

test("ten thousand delayed jobs cost nobody anything until they are due", async () => {
  const name = nats.name();
  let sent = 0;
  const queue = await nats.open(name, {
    openWebSocket: tapped((text) => {
      sent += text.length;
    }),
  });
  const wanted = idsOf("a", 10_000);
  for (let at = 0; at < wanted.length; at += 1000) {
    await put(queue, ...wanted.slice(at, at + 1000).map((id) => job(id, { delayMs: 3_600_000 })));
  }
  await put(queue, "now");
  await settle(queue, await take(queue), ACK);
  const before = sent;
  for (let round = 0; round < 20; round++) expect(await take(queue, 16)).toEqual([]);
  expect((sent - before) / 20).toBeLessThan(400);
  // Nothing of them waits at a consumer.
  const state = await nats.operator.consumer(`EDDY_JOBS_${name}`, "eddy_normal");
  expect([state.num_pending, state.num_ack_pending]).toEqual([0, 0]);
  expect(await queue.sizes?.()).toEqual({ ready: 0, delayed: 10_000, held: 0, dead: 0, paused: false });
});

test("several workers that move due jobs at the same time make each of them ready once", async () => {
  const name = nats.name();
  const queues = await Promise.all([nats.open(name), nats.open(name), nats.open(name)]);
  const wanted = idsOf("a", 300);
  await put(queues[0] as BrokerQueue, ...wanted.map((id) => job(id, { delayMs: 400 })));
  await Bun.sleep(450);
  const came = (await Promise.all(queues.map((queue) => drain(queue)))).flat();
  expect(ids(came).sort()).toEqual(wanted.sort());
});

test("a graceful stop leaves nothing pending, and gives back unstarted what it held", async () => {
  const name = nats.name();
  const broker = nats.connect();
  const producer = await nats.open(name);
  await put(producer, ...idsOf("a", 60));
  const started = Promise.withResolvers<void>();
  const worker = await startWorker(
    defineWorker({
      graceMs: 5_000,
      queues: [
        named(name, { codec: "text" }).handle(
          async () => {
            started.resolve();
            await Bun.sleep(100);
          },
          { prefetch: 16, concurrency: 2 },
        ),
      ],
    }),
    { broker, platform: bunPlatform() },
  );
  await started.promise;
  await worker.stop();
  await broker.close();
  const { consumers } = await nats.operator.api<{
    consumers: { name: string; num_ack_pending: number; num_waiting: number }[];
  }>(`CONSUMER.LIST.EDDY_JOBS_${name}`, { offset: 0 });
  expect(consumers.length).toBeGreaterThan(0);
  for (const one of consumers) expect([one.name, one.num_ack_pending]).toEqual([one.name, 0]);
  const sizes = await producer.sizes?.();
  expect(sizes?.held).toBe(0);
  const left = await drain(producer);
  expect(left.length).toBe(sizes?.ready as number);
  expect(left.every((one) => one.attempt === 1 && !one.suspect)).toBe(true);
  // What ran was two jobs; the others come again in their old order.
  expect(ids(left)).toEqual(idsOf("a", 60).slice(-left.length));
});
