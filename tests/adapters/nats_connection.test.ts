/** Connections that die: noticed, replaced, and whatever was on its way told truly. Verdicts that would come too late are not sent. */
import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { ACK, DEAD, drain, ids, idsOf, leaseId, put, settle, take } from "../support/conformance_steps.ts";
import { LONG, natsForFile } from "../support/nats_fixture.ts";
import { startNats } from "../support/nats_server.ts";
import { tapped } from "../support/nats_tap.ts";
import { WebSocketProxy } from "../support/ws_proxy.ts";

setDefaultTimeout(40_000);

let proxy: WebSocketProxy;
const nats = natsForFile(() => proxy.url);

beforeAll(async () => {
  proxy = await WebSocketProxy.start(nats.server.webSocketPort);
});
afterEach(() => proxy.thaw());
afterAll(() => proxy.stop());

/** Shows each outgoing frame to `trap`, which answers whether the connection is cut before it leaves. */
function trapped(trap: (text: string) => boolean): (url: string) => WebSocket {
  return (url) => {
    const socket = new WebSocket(url);
    const send = socket.send.bind(socket);
    socket.send = (data) => {
      if (trap(new TextDecoder().decode(data as Uint8Array))) proxy.cut();
      else send(data);
    };
    return socket;
  };
}

/** Repeats a verb as the loop does, until it is answered. */
async function again<T>(verb: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + 15_000;
  for (;;) {
    try {
      return await verb();
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await Bun.sleep(20);
    }
  }
}

for (const [verb, word] of [
  ["a claim", "CONSUMER.MSG.NEXT"],
  ["an ack", "+ACK"],
  ["a renewal", "+WPI"],
  ["a retry's copy", "HPUB eddy.jobs"],
] as const) {
  for (const before of [true, false]) {
    test(`cut ${before ? "before" : "after"} ${verb} left: sent again, it counts once`, async () => {
      const name = nats.name();
      let armed = false;
      let cutting = Promise.resolve();
      const queue = await nats.open(name, {
        openWebSocket: trapped((text) => {
          if (!armed || !text.includes(word)) return false;
          armed = false;
          if (before) return true;
          cutting = Bun.sleep(5).then(() => proxy.cut());
          return false;
        }),
      });
      await put(queue, ...idsOf("a", 8));
      const first = leaseId();
      armed = verb === "a claim";
      const deliveries = await again(() => take(queue, 4, first));
      armed = verb === "a renewal";
      expect(await again(() => queue.renew([first]))).toEqual(["held"]);
      armed = verb === "a retry's copy";
      const verdict = armed ? ({ kind: "retry", delayMs: 0 } as const) : ACK;
      if (verb === "an ack") armed = true;
      const held = deliveries.slice(0, 4);
      expect(await again(() => settle(queue, held, verdict))).toEqual(held.map(() => "done"));
      expect(armed).toBe(false);
      // The answer may have been faster than the cut, which is not to fall into the next claim.
      await cutting;
      const left = ids(await again(() => drain(queue))).sort();
      const finished = verdict === ACK ? new Set(ids(held)) : new Set<string>();
      const unfinished = idsOf("a", 8).filter((id) => !finished.has(id));
      // What was handed out into the cut comes back when its lease ends; the rest is there, once.
      const view = await nats.open(name, { url: nats.server.url });
      const inTheCut = (await view.sizes?.())?.held ?? 0;
      expect(new Set(left).size).toBe(left.length);
      expect(left.length + inTheCut).toBe(unfinished.length);
      if (verb !== "a claim") expect(inTheCut).toBe(0);
    });
  }
}

test("cut in the middle of a batch: what has come is handed out, and can be settled over the next connection", async () => {
  const name = nats.name();
  const queue = await nats.open(name);
  // Large enough that a batch takes many frames.
  const body = "x".repeat(100_000);
  for (let n = 0; n < 60; n += 10) {
    await queue.enqueue(
      `request-${name}-${n}`,
      idsOf(`${n}-`, 10).map((id) => ({
        id,
        body,
        headers: {},
        priority: "normal" as const,
        delayMs: 0,
        dedupe: false,
      })),
    );
  }
  proxy.delay(20, 20);
  const claiming = queue.claim({ leaseId: leaseId(), max: 60, waitMs: 0 });
  setTimeout(() => proxy.cut(), 60);
  const deliveries = await claiming.then(
    (reply) => reply.deliveries,
    () => [],
  );
  proxy.delay(0, 0);
  expect(deliveries.length).toBeLessThan(60);
  expect(await again(() => settle(queue, deliveries, ACK))).toEqual(deliveries.map(() => "done"));
  const sizes = await again(() => queue.sizes?.() ?? Promise.reject());
  expect(sizes.ready + sizes.held).toBe(60 - deliveries.length);
});

test("a connection that stands still is noticed and replaced, though nobody closed it", async () => {
  const name = nats.name();
  const queue = await nats.open(
    name,
    { pingEveryMs: 200, pongWithinMs: 200, connectTimeoutMs: 300, reconnectMaxMs: 200 },
    { requestTimeoutMs: 300 },
  );
  await put(queue, "a");
  const before = proxy.connections;
  proxy.freeze();
  await expect(take(queue)).rejects.toMatchObject({ name: "BrokerError" });
  const deadline = performance.now() + 10_000;
  while (proxy.connections < before + 2) {
    if (performance.now() > deadline) throw new Error("Waited ten seconds in vain for a fresh connection");
    await Bun.sleep(5);
  }
  proxy.thaw();
  // The frozen claim may have reached the server when the network came back: then the job is held for whoever asked.
  await put(queue, "b");
  expect(ids(await again(() => take(queue)))).toContain("b");
});

test("a server that stands still too", async () => {
  const own = await startNats();
  const queue = await nats.open(
    nats.name(),
    { url: own.url, pingEveryMs: 200, pongWithinMs: 200, connectTimeoutMs: 300, reconnectMaxMs: 200 },
    { requestTimeoutMs: 300 },
  );
  await put(queue, "a");
  await own.freeze();
  await expect(put(queue, "b")).rejects.toMatchObject({ name: "BrokerError", verb: "enqueue" });
  own.thaw();
  expect(ids(await again(() => take(queue)))).toContain("a");
  await own.stop();
});

test("a server that was killed and came back: leases go on, jobs are there, the connection is a new one", async () => {
  const own = await startNats();
  const queue = await nats.open(nats.name(), { url: own.url });
  await put(queue, ...idsOf("a", 20));
  const id = leaseId();
  const deliveries = await take(queue, 5, id);
  // The server writes what it handed out a moment later.
  await Bun.sleep(1_000);
  await own.kill();
  await expect(queue.renew([id])).rejects.toMatchObject({ name: "BrokerError", verb: "renew" });
  await own.restart();
  expect(await again(() => queue.renew([id]))).toEqual(["held"]);
  expect(await settle(queue, deliveries, ACK)).toEqual(deliveries.map(() => "done"));
  const rest = await drain(queue);
  expect(ids(rest)).toEqual(idsOf("a", 20).slice(5));
  await own.stop();
});

test("a request whose connection dies fails under its own name", async () => {
  const queue = await nats.open(nats.name());
  await put(queue, "a");
  const id = leaseId();
  await take(queue, 1, id);
  proxy.freeze();
  const renewing = queue.renew([id]).catch((error: unknown) => error);
  const putting = put(queue, "b").catch((error: unknown) => error);
  proxy.cut();
  expect(await renewing).toMatchObject({ name: "BrokerError", verb: "renew" });
  expect(await putting).toMatchObject({ name: "BrokerError", verb: "enqueue" });
  proxy.thaw();
});

test("a claim that waits outlives a short absence of its connection", async () => {
  const queue = await nats.open(nats.name());
  expect(await take(queue)).toEqual([]);
  const waiting = queue.claim({ leaseId: leaseId(), max: 1, waitMs: 10_000 }).catch(() => undefined);
  await Bun.sleep(50);
  proxy.cut();
  await waiting;
  await again(() => put(queue, "a"));
  expect(ids(await again(() => take(queue)))).toEqual(["a"]);
});

test("a verdict whose lease is over is lost, and nothing is sent", async () => {
  const name = nats.name();
  let sent = "";
  const queue = await nats.open(
    name,
    {
      openWebSocket: tapped((text) => {
        sent += text;
      }),
    },
    { leaseMs: 400, requestTimeoutMs: 80 },
  );
  await put(queue, "a", "b", "c", "d");
  const deliveries = await take(queue);
  await Bun.sleep(450);
  sent = "";
  for (const verdict of [ACK, DEAD, { kind: "release" }, { kind: "retry", delayMs: 0 }] as const) {
    expect(await settle(queue, deliveries, verdict)).toEqual(["lost", "lost", "lost", "lost"]);
  }
  expect(await queue.renew([deliveries[0]?.leaseId as string])).toEqual(["lost"]);
  expect(sent).not.toContain("$JS.ACK");
  expect((await take(queue)).map((one) => [one.id, one.attempt, one.suspect])).toEqual([
    ["a", 2, true],
    ["b", 2, true],
    ["c", 2, true],
    ["d", 2, true],
  ]);
});

test("a dead letter is stored before its job is ended: a crash between the two loses neither, and both are one in the end", async () => {
  const name = nats.name();
  let armed = true;
  const queue = await nats.open(name, {
    openWebSocket: trapped((text) => {
      if (!armed || !text.includes("+TERM")) return false;
      armed = false;
      return true;
    }),
  });
  await put(queue, "a");
  const deliveries = await take(queue);
  const counts = async () => {
    const messages = async (stream: string) =>
      (await nats.operator.api<{ state: { messages: number } }>(`STREAM.INFO.${stream}`)).state.messages;
    return [await messages(`EDDY_DEAD_${name}`), await messages(`EDDY_JOBS_${name}`)];
  };
  await expect(settle(queue, deliveries, DEAD)).rejects.toMatchObject({ name: "BrokerError" });
  expect(armed).toBe(false);
  expect(await counts()).toEqual([1, 1]);
  expect(await again(() => settle(queue, deliveries, DEAD))).toEqual(["done"]);
  expect(await counts()).toEqual([1, 0]);
  expect((await queue.peek?.("dead", 5))?.map((one) => [one.id, one.attempts])).toEqual([["a", 1]]);
});

test("while there is no server it is looked for again and again, with pauses", async () => {
  const own = await startNats();
  const broker = nats.connect({ url: own.url, reconnectMaxMs: 200 });
  const queue = broker.queue(nats.name(), { ...LONG, requestTimeoutMs: 300 });
  await queue.open();
  await own.kill();
  const before = broker.requests;
  const from = performance.now();
  while (performance.now() - from < 2_000) await take(queue).catch(() => Bun.sleep(10));
  const dials = broker.requests - before;
  expect(dials).toBeGreaterThan(3);
  expect(dials).toBeLessThan(60);
  await own.restart();
  expect(await again(() => take(queue))).toEqual([]);
  await own.stop();
});

test("closing is bounded, though the connection stands still", async () => {
  const broker = nats.connect({ pongWithinMs: 300 });
  const queue = broker.queue(nats.name(), LONG);
  await queue.open();
  const waiting = queue.claim({ leaseId: leaseId(), max: 1, waitMs: 10_000 }).catch((error: Error) => error);
  proxy.freeze();
  await broker.close();
  expect(await waiting).toBeInstanceOf(Error);
});

test("a claim that may not wait sees a resume whose news is still on its way", async () => {
  const name = nats.name();
  const nearby = await nats.open(name, { url: nats.server.url });
  const far = await nats.open(name);
  await put(nearby, "a");
  await nearby.pause?.();
  expect(await take(far, 1)).toEqual([]);
  proxy.delay(150, 150);
  try {
    await nearby.resume?.();
    expect(ids(await take(far, 1))).toEqual(["a"]);
  } finally {
    proxy.delay(0, 0);
  }
});
