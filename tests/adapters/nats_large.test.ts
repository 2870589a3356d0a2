/** Messages that are as large as the server takes: what leaves no room for a retry's headers is refused at its enqueue, or told of, and never in the way of others. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { NatsBroker } from "../../adapters/nats/mod.ts";
import { bunPlatform } from "../../runtimes/bun/platform.ts";
import type { BrokerQueue } from "../../src/broker.ts";
import { BrokerError, BrokerRefusedError } from "../../src/errors.ts";
import { createApp } from "../../src/http/mod.ts";
import { defineWorker, EnqueueError, queue as named, Producer } from "../../src/mod.ts";
import { ACK, DEAD, ids, job, put, RELEASE, RETRY, settle, take } from "../support/conformance_steps.ts";
import { LONG } from "../support/nats_fixture.ts";
import { type NatsServer, startNats } from "../support/nats_server.ts";
import { Operator } from "../support/nats_tap.ts";

setDefaultTimeout(30_000);

const MAX_PAYLOAD = 100_000;
const LARGEST = "x".repeat(MAX_PAYLOAD);

let server: NatsServer;
let operator: Operator;
beforeAll(async () => {
  server = await startNats({ maxPayload: MAX_PAYLOAD });
  operator = await Operator.connect(server.url);
});
afterAll(async () => {
  await operator.close();
  await server.stop();
});

async function withQueue(name: string, act: (queue: BrokerQueue) => Promise<void>): Promise<void> {
  const broker = new NatsBroker({ url: server.url });
  try {
    const queue = broker.queue(name, LONG);
    await queue.open();
    await act(queue);
  } finally {
    await broker.close();
  }
}

async function failure(verb: Promise<unknown>): Promise<Error> {
  return verb.then(
    () => expect.unreachable(),
    (error: Error) => error,
  );
}

test.each([
  ["retry", RETRY, { ready: 2, dead: 0 }],
  ["release", RELEASE, { ready: 2, dead: 0 }],
  ["dead", DEAD, { ready: 0, dead: 2 }],
] as const)(
  "a message of the largest size, by whomever: a %s beside others fails alone, in words, once",
  async (name, verdict, left) => {
    await withQueue(name, async (queue) => {
      await put(queue, "a");
      await operator.publish(`eddy.jobs.${name}`, LARGEST);
      await put(queue, "b");
      const taken = await take(queue);
      const error = await failure(settle(queue, taken, verdict));
      expect(error).toBeInstanceOf(BrokerError);
      expect(error).not.toBeInstanceOf(BrokerRefusedError);
      expect(error.message).toContain(`Cannot settle job seq:2: `);
      expect(error.message).not.toContain("xx");
      // Sent again, as the loop does: the others are settled, and it is in nobody's way.
      expect(await settle(queue, taken, verdict)).toEqual(["done", "lost", "done"]);
      expect(await queue.sizes?.()).toMatchObject({ ...left, held: 1 });
    });
  },
);

test("it can be acked", async () => {
  await withQueue("acked", async (queue) => {
    await operator.publish("eddy.jobs.acked", LARGEST);
    expect(await settle(queue, await take(queue), ACK)).toEqual(["done"]);
    expect(await queue.sizes?.()).toMatchObject({ ready: 0, held: 0 });
  });
});

test("one of ours that would leave no room is refused at its enqueue; the largest that is taken can become anything", async () => {
  await withQueue("ours", async (queue) => {
    const { maxBodyBytes } = queue.limits;
    const body = "x".repeat(maxBodyBytes);
    const padded = (length: number) =>
      job("j", { body, headers: { a: "v".repeat(4_000), b: "v".repeat(3_000), c: "v".repeat(length) } });
    const error = await failure(put(queue, padded(2_000), job("small")));
    expect(error).toBeInstanceOf(RangeError);
    expect(error.message).toContain("Cannot enqueue job j: with its headers");
    expect(await queue.sizes?.()).toMatchObject({ ready: 0 });
    // The longest id, delayed, under the longest headers that are let through.
    let length = 2_000;
    const id = "i".repeat(200);
    for (;;) {
      const tried = { ...padded(length), id, delayMs: 1 };
      if (
        await put(queue, tried).then(
          () => true,
          () => false,
        )
      )
        break;
      length -= 1;
    }
    expect(length).toBeGreaterThan(500);
    const taken = async () => {
      const deadline = performance.now() + 10_000;
      for (;;) {
        const found = await take(queue);
        if (found.length > 0 || performance.now() > deadline) return found;
      }
    };
    for (const verdict of [RELEASE, { kind: "retry", delayMs: 1, error: "e" }, RETRY] as const) {
      expect(await settle(queue, await taken(), verdict)).toEqual(["done"]);
    }
    const found = await taken();
    expect(ids(found)).toEqual([id]);
    expect(await settle(queue, found, { kind: "dead", error: "\u{1f4a3}".repeat(500) })).toEqual(["done"]);
    expect(await queue.redrive?.({ limit: 1 })).toBe(1);
    expect(ids(await taken())).toEqual([id]);
  });
});

test("one whose headers leave no room for it is told as too large, and as not enqueued, by a producer and by HTTP", async () => {
  const platform = bunPlatform();
  const broker = new NatsBroker({ url: server.url });
  const notes = named("notes", { codec: "text" });
  try {
    const definition = defineWorker({ queues: [notes.handle(() => {})] });
    const app = createApp({ definition, broker, platform, requireToken: false });
    const open = broker.queue("notes", LONG);
    await open.open();
    const body = "x".repeat(open.limits.maxBodyBytes);
    const headers = Object.fromEntries(["a", "b", "c"].map((name) => [name, "v".repeat(3_500)]));
    const error = await failure(new Producer({ broker, platform }).enqueue(notes, body, { headers }));
    expect(error).toBeInstanceOf(EnqueueError);
    expect(error).toMatchObject({ accepted: 0, uncertain: 0 });
    expect(error.message).toContain("with its headers it is larger than");
    expect(error.message).toContain("(0 of 1 jobs were accepted; no other one was)");
    const sent = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [`eddy-header-${name}`, value]),
    );
    const answer = await app.request("http://127.0.0.1/v1/queues/notes/jobs", {
      method: "POST",
      body,
      headers: sent,
    });
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([413, "too-large"]);
  } finally {
    await broker.close();
  }
});
