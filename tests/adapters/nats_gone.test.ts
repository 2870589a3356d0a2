/** Streams that are gone under producers and workers which go on: they are made anew, and that is told. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { NatsBroker } from "../../adapters/nats/mod.ts";
import { bunPlatform } from "../../runtimes/bun/platform.ts";
import { defineWorker, queue as named, Producer, startWorker } from "../../src/mod.ts";
import { ACK, DEAD, ids, job, put, settle, take } from "../support/conformance_steps.ts";
import { LONG, natsForFile } from "../support/nats_fixture.ts";
import { startNats } from "../support/nats_server.ts";

setDefaultTimeout(30_000);

const nats = natsForFile();

async function gone(name: string, kind: "JOBS" | "DEAD" = "JOBS"): Promise<void> {
  await nats.operator.api(`STREAM.DELETE.EDDY_${kind}_${name}`);
}

async function messageOf(work: Promise<unknown> | undefined): Promise<string> {
  return (work as Promise<unknown>).then(
    () => "it was done",
    (error: Error) => error.message,
  );
}

test("an enqueue finds it made anew, a delayed one too", async () => {
  const name = nats.name();
  const queue = await nats.open(name);
  for (const delayMs of [0, 60_000]) {
    await gone(name);
    expect(await put(queue, job("a", { delayMs }))).toHaveLength(1);
  }
  expect(await queue.sizes?.()).toMatchObject({ ready: 0, delayed: 1 });
});

test("what is enqueued then is what was given, whatever the caller did with it meanwhile", async () => {
  const name = nats.name();
  const queue = await nats.open(name);
  await gone(name);
  const body = new Uint8Array([255, 1]);
  const enqueued = put(queue, job("a", { body }));
  body.fill(9);
  await enqueued;
  expect((await take(queue)).map((one) => one.body)).toEqual([new Uint8Array([255, 1])]);
});

test("a claim tells of it once, and the next one works", async () => {
  const name = nats.name();
  const queue = await nats.open(name);
  await put(queue, "lost");
  expect(ids(await take(queue))).toEqual(["lost"]);
  await gone(name);
  const said: string[] = [];
  const deadline = performance.now() + 10_000;
  for (let last = ""; !last.includes("is gone") && performance.now() < deadline; ) {
    last = await messageOf(queue.claim({ leaseId: crypto.randomUUID(), max: 1, waitMs: 300 }));
    said.push(last);
  }
  expect(said.at(-1)).toContain(`Cannot claim: the stream EDDY_JOBS_${name} is gone, with what was in it`);
  expect(await take(queue)).toEqual([]);
  await put(queue, "new");
  expect(ids(await take(queue))).toEqual(["new"]);
});

test("a dead letter that finds its stream gone is told to have failed, and works when it is sent again", async () => {
  const name = nats.name();
  const queue = await nats.open(name);
  await put(queue, "a");
  const taken = await take(queue);
  await gone(name, "DEAD");
  expect(await messageOf(settle(queue, taken, DEAD))).toContain(`the stream EDDY_DEAD_${name} is gone`);
  expect(await settle(queue, taken, DEAD)).toEqual(["done"]);
  expect(await queue.sizes?.()).toMatchObject({ ready: 0, held: 0, dead: 1 });
});

test("whoever only looks makes nothing", async () => {
  const name = nats.name();
  await nats.open(name);
  const looks = nats.connect().queue(name, { ...LONG, create: false });
  await looks.open();
  await gone(name);
  expect(await messageOf(put(looks, "a"))).toContain("is gone");
  expect(
    (await nats.operator.api<{ error?: { code: number } }>(`STREAM.INFO.EDDY_JOBS_${name}`)).error?.code,
  ).toBe(404);
});

test("with streams in memory a worker and a producer go on after the server was started anew, with what is enqueued from then on", async () => {
  const server = await startNats();
  const platform = bunPlatform();
  const ran: unknown[] = [];
  const broker = new NatsBroker({ url: server.url, storage: "memory" });
  const jobs = named("jobs");
  const worker = await startWorker(
    defineWorker({ queues: [jobs.handle((job) => void ran.push(job.body), { leaseMs: 5_000 })] }),
    { broker, platform },
  );
  const producer = new Producer({ broker, platform });
  const until = async (body: string) => {
    const deadline = performance.now() + 20_000;
    while (!ran.includes(body)) {
      if (performance.now() > deadline) throw new Error(`Waited in vain for ${body}`);
      await Bun.sleep(5);
    }
  };
  try {
    await producer.enqueue(jobs, "before");
    await until("before");
    await server.restart();
    await producer.enqueue(jobs, "after");
    await until("after");
    expect(ran).toEqual(["before", "after"]);
  } finally {
    await worker.stop();
    await broker.close();
    await server.stop();
  }
});

test("a window of ids that JetStream cannot keep is refused by its name, and leaves nothing behind", async () => {
  for (const dedupeWindowMs of [50, 9_300_000_000_000]) {
    const name = nats.name();
    const opened = nats
      .connect()
      .queue(name, { ...LONG, dedupeWindowMs })
      .open();
    expect(await messageOf(opened)).toStartWith(
      `Cannot open queue ${name}: dedupeWindowMs is ${dedupeWindowMs}; `,
    );
    const { streams } = await nats.operator.api<{ streams: string[] | null }>("STREAM.NAMES", {
      subject: `eddy.dead.${name}`,
    });
    expect(streams ?? []).toEqual([]);
  }
});

test("what is settled of a stream that is gone is lost, and nobody waits for it for long", async () => {
  const name = nats.name();
  const queue = await nats.open(name, {}, { leaseMs: 3_000, requestTimeoutMs: 500 });
  await put(queue, "a");
  const taken = await take(queue);
  await gone(name);
  expect(await messageOf(settle(queue, taken, ACK))).toContain("Cannot settle");
});
