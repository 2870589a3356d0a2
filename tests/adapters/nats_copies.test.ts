/** Copies of claims, and messages for claims that have their answer by then. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { ACK, ids, idsOf, job, put, settle, take } from "../support/conformance_steps.ts";
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

/** WebSockets of which the first frame that holds a text is held back, and those behind it but for refusals, until they are let go. */
function holding(text: string) {
  const frames: (() => void)[] = [];
  let state: "passes" | "holds" | "over" = "passes";
  const openWebSocket = (url: string): WebSocket => {
    const socket = new WebSocket(url);
    let take: ((event: MessageEvent) => void) | undefined;
    Object.defineProperty(socket, "onmessage", {
      set: (fn: (event: MessageEvent) => void) => {
        take = fn;
      },
    });
    socket.addEventListener("message", (event) => {
      const said = new TextDecoder().decode(event.data as ArrayBuffer);
      if (state === "passes" && said.includes(text)) state = "holds";
      if (state === "holds" && !said.includes("NATS/1.0 409")) frames.push(() => take?.(event));
      else take?.(event);
    });
    return socket;
  };
  const letGo = (): void => {
    state = "over";
    for (const frame of frames.splice(0)) frame();
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
