/** A queue that lives in a Durable Object: its alarms, its handlers, and what survives when the object is ended. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import type { EddyEvent } from "../../../src/mod.ts";
import { Workerd } from "../../support/workerd.ts";
import type { Noted } from "./object_worker.ts";

const TOKEN = "test-token";
const HEADERS = { authorization: `Bearer ${TOKEN}` };

let workerd: Workerd;
let noted: Noted[] = [];

beforeAll(async () => {
  workerd = await Workerd.start({
    entry: resolve(import.meta.dir, "object_worker.ts"),
    bindings: { EDDY_TOKEN: TOKEN },
    objects: { EDDY_QUEUE: "EddyQueue" },
  });
}, 60_000);
afterAll(async () => {
  await workerd?.stop();
});

async function enqueue(
  queue: string,
  body: unknown,
  options: { readonly id?: string; readonly delayMs?: number } = {},
): Promise<string> {
  const headers: Record<string, string> = { ...HEADERS };
  if (options.id !== undefined) headers["eddy-id"] = options.id;
  if (options.delayMs !== undefined) headers["eddy-delay-ms"] = String(options.delayMs);
  const { id } = await workerd.json<{ id: string }>(`/v1/queues/${queue}/jobs`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  return id;
}

/** Waits until the handlers noted what is looked for. The object needs no request to go on: these only look. */
async function until(what: string, found: (all: readonly Noted[]) => boolean, ms = 20_000): Promise<void> {
  const deadline = performance.now() + ms;
  for (;;) {
    noted.push(...(await workerd.json<Noted[]>("/test/noted")));
    if (found(noted)) return;
    if (performance.now() > deadline) throw new Error(`Waited in vain until ${what}`);
    await Bun.sleep(20);
  }
}

async function sizes(queue: string): Promise<Record<string, number>> {
  const { queues } = await workerd.json<{ queues: { queue: string; sizes: Record<string, number> }[] }>(
    "/v1/queues",
    { headers: HEADERS },
  );
  return queues.find((one) => one.queue === queue)!.sizes;
}

async function untilEmpty(queue: string): Promise<void> {
  const deadline = performance.now() + 20_000;
  for (;;) {
    const { ready, delayed, held } = await sizes(queue);
    if (ready! + delayed! + held! === 0) return;
    if (performance.now() > deadline) throw new Error(`Queue ${queue} was not emptied`);
    await Bun.sleep(20);
  }
}

const runsOf = (id: string) => noted.filter((one) => one.id === id);

describe("a queue in an object", () => {
  test("runs what is enqueued, soon, with nothing else to trigger it", async () => {
    const took = await workerd.json<number[]>("/test/latency?count=300");
    noted = [];
    took.sort((a, b) => a - b);
    expect(took).toHaveLength(300);
    console.log(
      `object: enqueue to handler start, 300 jobs one after the other: median ${took[150]} ms, p99 ${took[296]} ms`,
    );
    await untilEmpty("one");
  });

  test("works off ten thousand jobs, each once", async () => {
    const lines = Array.from({ length: 1_000 }, () => "{}").join("\n");
    const startedAt = performance.now();
    const ids = new Set<string>();
    for (let part = 0; part < 10; part += 1) {
      const { accepted } = await workerd.json<{ accepted: { id: string }[] }>("/v1/queues/many/jobs", {
        method: "POST",
        headers: { ...HEADERS, "content-type": "application/x-ndjson" },
        body: lines,
      });
      for (const { id } of accepted) ids.add(id);
    }
    const enqueuedMs = performance.now() - startedAt;
    noted = [];
    const ran = new Map<string, number>();
    await until("all ran", (all) => all.filter((one) => ids.has(one.id)).length >= 10_000, 60_000).catch(
      () => {},
    );
    // Some ran before the last enqueue was answered.
    for (const one of noted) ran.set(one.id, (ran.get(one.id) ?? 0) + 1);
    const totalMs = performance.now() - startedAt;
    console.log(
      `object: 10,000 jobs enqueued in ${Math.round(enqueuedMs)} ms, all run after ${Math.round(totalMs)} ms`,
    );
    expect(ids.size).toBe(10_000);
    expect([...ids].filter((id) => ran.get(id) !== 1)).toEqual([]);
    await untilEmpty("many");
  }, 90_000);

  test("starts delayed jobs when they are due", async () => {
    noted = [];
    const due = new Map<string, number>();
    for (let n = 0; n < 40; n += 1) {
      const delayMs = 300 + ((n * 37) % 40) * 25;
      due.set(await enqueue("later", {}, { delayMs }), delayMs);
    }
    await until("all ran", (all) => all.length >= 40);
    const late = noted.map((one) => one.at - one.enqueuedAt - due.get(one.id)!).sort((a, b) => a - b);
    console.log(
      `object: 40 delayed jobs: first ${late[0]} ms, median ${late[20]} ms, last ${late[39]} ms after they were due`,
    );
    expect(late[0]).toBeGreaterThanOrEqual(0);
    await untilEmpty("later");
  });

  test("wakes for a retry", async () => {
    noted = [];
    const id = await enqueue("one", { fails: 1 });
    await until("it ran twice", () => runsOf(id).length === 2);
    expect(runsOf(id).map((one) => one.attempt)).toEqual([1, 2]);
    await untilEmpty("one");
  });

  test("takes back what somebody outside claimed and forgot", async () => {
    noted = [];
    await workerd.json("/v1/queues/one/pause", { method: "POST", headers: HEADERS });
    const id = await enqueue("one", {});
    // A claim of a paused queue brings nothing, so the object's own run cannot be first, nor can ours.
    expect(await workerd.json<string[]>("/test/claim")).toEqual([]);
    await workerd.json("/v1/queues/one/resume", { method: "POST", headers: HEADERS });
    await until("it ran", () => runsOf(id).length === 1);
    const held = await enqueue("one", { waitMs: 300 });
    await until("the object is busy", () => runsOf(held).length === 1);
    const behind = await enqueue("one", {});
    const claimed = await workerd.json<string[]>("/test/claim");
    expect(claimed).toEqual([behind]);
    await until("the lease ran out", () => runsOf(behind).length === 1);
    expect(runsOf(behind)[0]).toMatchObject({ attempt: 2, suspect: true });
    await untilEmpty("one");
  });

  test("goes on when the object is ended in the middle", async () => {
    noted = [];
    const slow = await enqueue("one", { waitMs: 1_500 });
    await until("the first runs", () => runsOf(slow).length === 1);
    const rest = [await enqueue("one", {}), await enqueue("one", {})];
    await workerd.json("/test/end", { method: "POST" });
    await until("all ran", () => rest.every((id) => runsOf(id).length === 1) && runsOf(slow).length === 2);
    expect(runsOf(slow)[1]).toMatchObject({ attempt: 2, suspect: true });
    await untilEmpty("one");
  }, 30_000);

  test("sets a job that ends its object each time aside, and none of its neighbours", async () => {
    noted = [];
    const killer = await enqueue("one", { kills: true });
    const rest = [await enqueue("one", {}), await enqueue("one", {}), await enqueue("one", {})];
    await until("the neighbours ran", () => rest.every((id) => runsOf(id).length >= 1));
    const deadline = performance.now() + 20_000;
    while ((await sizes("one")).dead !== 1) {
      if (performance.now() > deadline) throw new Error("It did not become a dead letter");
      await Bun.sleep(50);
    }
    const { jobs } = await workerd.json<{ jobs: { id: string }[] }>("/v1/queues/one/dead", {
      headers: HEADERS,
    });
    expect(jobs.map((one) => one.id)).toEqual([killer]);
    await untilEmpty("one");
    await workerd.json("/v1/queues/one/clear", {
      method: "POST",
      headers: HEADERS,
      body: JSON.stringify({ states: ["dead"] }),
    });
  }, 60_000);

  test("goes on by itself after the whole runtime was started anew", async () => {
    noted = [];
    const id = await enqueue("later", {}, { delayMs: 1_500 });
    await workerd.restart();
    // Nothing but this reads from now on, and it does not touch the object.
    await until("it ran", () => runsOf(id).length === 1);
    expect(runsOf(id)[0]!.at - runsOf(id)[0]!.enqueuedAt).toBeGreaterThanOrEqual(1_500);
  }, 30_000);

  test("lets enqueues in while it works", async () => {
    noted = [];
    await workerd.json("/test/events");
    const lines = Array.from({ length: 1_000 }, () => "{}").join("\n");
    const bulk = await workerd.json<{ accepted: { id: string }[] }>("/v1/queues/one/jobs", {
      method: "POST",
      headers: { ...HEADERS, "content-type": "application/x-ndjson" },
      body: lines,
    });
    const last = await enqueue("one", {});
    await until("all ran", () => noted.length >= 1_001 && runsOf(last).length === 1);
    expect(new Set(noted.map((one) => one.id)).size).toBe(1_001);
    expect(bulk.accepted).toHaveLength(1_000);
    const events = await workerd.json<EddyEvent[]>("/test/events");
    expect(events.filter((event) => event.type === "brokerError" || event.type === "lost")).toEqual([]);
    await untilEmpty("one");
  });
});

describe("its HTTP app", () => {
  test("needs the token, and says what is wrong without one", async () => {
    expect((await workerd.fetch("/v1/queues")).status).toBe(401);
    expect((await workerd.fetch("/health")).status).toBe(200);
    expect(
      (await workerd.fetch("/v1/queues/unknown/jobs", { method: "POST", headers: HEADERS })).status,
    ).toBe(404);
  });
});
