/** Queues whose streams are not there, or not any more: every verb says so in words of its own, and what goes on trying leaves nothing behind. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { NatsBroker } from "../../adapters/nats/mod.ts";
import type { BrokerQueue } from "../../src/broker.ts";
import { BrokerError, BrokerRefusedError, QueueAbsentError } from "../../src/errors.ts";
import { ids, put, take } from "../support/conformance_steps.ts";
import { LONG, natsForFile } from "../support/nats_fixture.ts";
import { startNats } from "../support/nats_server.ts";
import { tapped } from "../support/nats_tap.ts";

setDefaultTimeout(30_000);

const nats = natsForFile();

const VERBS: readonly (readonly [string, (queue: BrokerQueue) => Promise<unknown> | undefined])[] = [
  ["claim", (queue) => take(queue)],
  ["enqueue", (queue) => put(queue, "a")],
  ["sizes", (queue) => queue.sizes?.()],
  ["peek", (queue) => queue.peek?.("ready", 1)],
  ["peek", (queue) => queue.peek?.("dead", 1)],
  ["clear", (queue) => queue.clear?.(["ready"])],
  ["clear", (queue) => queue.clear?.(["dead"])],
  ["redrive", (queue) => queue.redrive?.({ limit: 1 })],
  ["pause", (queue) => queue.pause?.()],
];

async function failure(verb: Promise<unknown> | undefined): Promise<unknown> {
  return verb?.then(
    () => undefined,
    (error: unknown) => error,
  );
}

test.each(VERBS)(
  "%s, where there is no stream: an error of the port's, that says what could not be done",
  async (verb, act) => {
    const error = await failure(act(nats.connect().queue(nats.name(), LONG)));
    expect(error).toBeInstanceOf(BrokerError);
    expect(error).toMatchObject({ name: "BrokerError", broker: "nats", verb });
    expect((error as Error).message).toStartWith(`Cannot ${verb}: `);
  },
);

test("JetStream that goes and comes again is a passing error to whoever was let in, not a final one", async () => {
  const own = await startNats();
  const broker = new NatsBroker({ url: own.url });
  try {
    const queue = broker.queue("q", LONG);
    await queue.open();
    await put(queue, "a");
    await own.restart(false);
    let error: unknown;
    const deadline = performance.now() + 10_000;
    while (!String(error).includes("has no JetStream")) {
      if (performance.now() > deadline) throw error;
      error = await failure(take(queue));
    }
    expect(error).toBeInstanceOf(BrokerError);
    expect(error).not.toBeInstanceOf(BrokerRefusedError);
    await own.restart();
    expect(ids(await take(queue))).toEqual(["a"]);
  } finally {
    await broker.close();
    await own.stop();
  }
});

test("a worker that tries again and again while its stream is gone listens once a connection", async () => {
  let subscriptions = 0;
  const openWebSocket = tapped((text) => {
    subscriptions += text.split("SUB eddy.").length - 1;
  });
  const queue = nats.connect({ openWebSocket }).queue(nats.name(), LONG);
  for (let n = 0; n < 5; n++) expect(await failure(take(queue))).toBeInstanceOf(BrokerError);
  // The news of jobs, and the switch that pauses.
  expect(subscriptions).toBe(2);
});

describe("a look alone", () => {
  const LOOK = { create: false } as const;

  async function streams(name: string): Promise<string[]> {
    const found = await nats.operator.api<{ streams: string[] | null }>("STREAM.NAMES");
    return (found.streams ?? []).filter((stream) => stream.endsWith(`_${name}`)).sort();
  }

  test("makes nothing, and says what is not there: of a queue, or of the half of one", async () => {
    const name = nats.name();
    const error = await failure(nats.open(name, {}, LOOK));
    expect(error).toBeInstanceOf(QueueAbsentError);
    expect((error as Error).message).toBe(
      `Cannot open queue ${name}: it is not there, for the server has no stream EDDY_JOBS_${name}; name another, or enqueue a job first`,
    );
    expect(await streams(name)).toEqual([]);
    await nats.open(name);
    await nats.operator.api(`STREAM.DELETE.EDDY_DEAD_${name}`);
    expect(String(await failure(nats.open(name, {}, LOOK)))).toContain(`has no stream EDDY_DEAD_${name};`);
    expect(await streams(name)).toEqual([`EDDY_JOBS_${name}`]);
  });

  test("sees a queue that is there, and changes nothing about it", async () => {
    const name = nats.name();
    await put(await nats.open(name), "a");
    const look = await nats.open(name, {}, { ...LOOK, dedupeWindowMs: LONG.dedupeWindowMs * 2 });
    expect(ids((await look.peek?.("ready", 10)) ?? [])).toEqual(["a"]);
    expect(await look.sizes?.()).toMatchObject({ ready: 1, dead: 0 });
    const info = await nats.operator.api<{ config: { duplicate_window: number } }>(
      `STREAM.INFO.EDDY_JOBS_${name}`,
    );
    expect(info.config.duplicate_window).toBe(LONG.dedupeWindowMs * 1e6);
  });
});
