/** Copies of claims, and messages for claims that have their answer by then. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { ACK, drain, ids, idsOf, job, put, settle, take } from "../support/conformance_steps.ts";
import { natsForFile } from "../support/nats_fixture.ts";

setDefaultTimeout(30_000);

const nats = natsForFile();

test("a copy of a claim answers with what it holds, whatever ended while it was under way", async () => {
  const queue = await nats.open(nats.name());
  await put(queue, "a");
  const one = await queue.claim({ leaseId: "loop.1", max: 1, waitMs: 0 });
  const waiting = queue.claim({ leaseId: "loop.2", max: 1, waitMs: 5_000 });
  // The first end that there is.
  await settle(queue, one.deliveries, ACK);
  await put(queue, "b", "c");
  const first = await waiting;
  expect(ids(first.deliveries)).toEqual(["b"]);
  expect(ids((await queue.claim({ leaseId: "loop.2", max: 1, waitMs: 0 })).deliveries)).toEqual(["b"]);
});

test("a copy of a claim whose lease is over takes nothing, whatever other ids begin as its own", async () => {
  const queue = await nats.open(nats.name());
  await put(queue, ...idsOf("a", 10));
  const finish = async (leaseId: string) => {
    const { deliveries } = await queue.claim({ leaseId, max: 1, waitMs: 0 });
    await settle(queue, deliveries, ACK);
    return deliveries.length;
  };
  for (const leaseId of ["x.1", "a.b.1", "a.1", "a.b.2", "x.2"]) expect(await finish(leaseId)).toBe(1);
  for (const leaseId of ["x.1", "a.b.1", "a.1", "a.b.2", "x.2"]) expect(await finish(leaseId)).toBe(0);
});

/** WebSockets that hold back the first message with a text, and what comes behind it but for refusals, until all is let go. */
function holding(text: string) {
  const held: (() => void)[] = [];
  let state: "passes" | "holds" | "over" = "passes";
  const openWebSocket = (url: string): WebSocket => {
    const socket = new WebSocket(url);
    let take: ((event: { readonly data: ArrayBuffer }) => void) | undefined;
    Object.defineProperty(socket, "onmessage", {
      set: (fn: typeof take) => {
        take = fn;
      },
    });
    socket.addEventListener("message", ({ data }: MessageEvent<ArrayBuffer>) => {
      const said = new TextDecoder().decode(data);
      if (state === "passes" && said.includes(text)) {
        state = "holds";
        const at = said.lastIndexOf("HMSG ", said.indexOf(text));
        if (at > 0) take?.({ data: data.slice(0, at) });
        held.push(() => take?.({ data: data.slice(at) }));
      } else if (state === "holds" && !said.includes("NATS/1.0 409")) held.push(() => take?.({ data }));
      else take?.({ data });
    });
    return socket;
  };
  const letGo = (): void => {
    state = "over";
    for (const pass of held.splice(0)) pass();
  };
  return { openWebSocket, letGo };
}

test("what comes for a claim that another level's refusal has failed answers the claim's copy", async () => {
  const name = nats.name();
  const { openWebSocket, letGo } = holding("the urgent one");
  const queue = await nats.open(name, { openWebSocket });
  // Both levels' consumers are known.
  await put(queue, job("a", { priority: "high" }), "b");
  await settle(queue, await take(queue), ACK);
  const normal = `EDDY_JOBS_${name}.eddy_normal`;
  const { config } = await nats.operator.consumer(`EDDY_JOBS_${name}`, "eddy_normal");
  const stream_name = `EDDY_JOBS_${name}`;
  await nats.operator.api(`CONSUMER.DURABLE.CREATE.${normal}`, {
    stream_name,
    config: { ...config, max_batch: 1 },
  });
  await put(queue, job("c", { priority: "high", body: "the urgent one" }));
  const claim = () => queue.claim({ leaseId: "twice", max: 16, waitMs: 0 });
  await expect(claim()).rejects.toThrow("409");
  letGo();
  expect(ids((await claim()).deliveries)).toEqual(["c"]);
});

test("what a second request of a pull brings is no answer to the next pull, nor a proof that the acks before that were read", async () => {
  const name = nats.name();
  const { openWebSocket, letGo } = holding("the second");
  let pulls = 0;
  const askedTwice = Promise.withResolvers<void>();
  const queue = await nats.open(name, {
    openWebSocket: (url) => {
      const socket = openWebSocket(url);
      const send = socket.send.bind(socket);
      socket.send = (data) => {
        if (new TextDecoder().decode(data as Uint8Array).includes("CONSUMER.MSG.NEXT")) pulls += 1;
        if (pulls === 3) askedTwice.resolve();
        send(data);
      };
      return socket;
    },
  });
  await put(queue, "a");
  await settle(queue, await take(queue, 1), ACK);
  await put(queue, job("b", { body: "the first" }), job("c", { body: "the second" }));
  expect(pulls).toBe(1);
  await nats.server.freeze();
  const claiming = take(queue, 1);
  await askedTwice.promise;
  nats.server.thaw();
  const first = await claiming;
  expect(ids(first)).toEqual(["b"]);
  await nats.server.freeze();
  let isSettled = false;
  const settling = settle(queue, first, ACK).then(() => {
    isSettled = true;
  });
  const next = take(queue, 1);
  letGo();
  await Bun.sleep(0);
  expect(isSettled).toBe(false);
  nats.server.thaw();
  await settling;
  expect(ids([...(await next), ...(await drain(queue))])).toEqual(["c"]);
});

test("a job that comes again has the headers it was enqueued with, whatever its handler made of them", async () => {
  const queue = await nats.open(nats.name());
  const headers = { kept: "as it was", padded: " exactly " };
  await put(queue, job("a", { headers }), job("b", { headers }));
  const taken = await take(queue);
  for (const one of taken)
    Object.assign(one.headers as Record<string, string>, { kept: "not", "more\r\nX": "y" });
  await settle(queue, taken.slice(0, 1), { kind: "retry", delayMs: 0 });
  await settle(queue, taken.slice(1), { kind: "release" });
  for (const one of await take(queue)) expect({ ...one.headers }).toEqual(headers);
});

test("a delivery can be written down as JSON, and is what the port says of one", async () => {
  const queue = await nats.open(nats.name());
  await put(queue, "a");
  const [taken] = await take(queue);
  expect(JSON.parse(JSON.stringify(taken))).toMatchObject({
    id: "a",
    attempt: 1,
    suspect: false,
    priority: "normal",
  });
  expect(Object.keys(JSON.parse(JSON.stringify(taken))).sort()).toEqual([
    "attempt",
    "body",
    "enqueuedAt",
    "headers",
    "id",
    "leaseId",
    "priority",
    "suspect",
    "token",
  ]);
});
