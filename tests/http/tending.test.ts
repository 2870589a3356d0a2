/** Looking at queues and tending them over HTTP; a worker's health and numbers. */
import { describe, expect, test } from "bun:test";
import { MemoryBroker } from "../../adapters/memory.ts";
import { RedisBroker } from "../../adapters/redis/mod.ts";
import { BrokerError, type Job, startWorker } from "../../src/mod.ts";
import { FaultyBroker } from "../support/faulty_broker.ts";
import { freePort } from "../support/kept_server.ts";
import { ask, definitionOf, expectRefusal, memoryBroker, openApp, platform, post } from "./fixture.ts";

const GOOD = '{"to":"ada@example.com"}';

/** Something to wait for that a handler or the test lets go of. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

/** An app whose queue `emails` holds one dead letter, `bad`. */
async function withDeadLetter(broker = memoryBroker()) {
  const definition = definitionOf((job) => job.deadLetter("the receiver is gone"));
  const app = openApp({ broker, definition });
  await post(app, "/v1/queues/emails/jobs", GOOD, { "Eddy-Id": "bad" });
  expect((await post(app, "/v1/drain")).json).toMatchObject({ jobs: 1, dead: 1, stopped: "empty", left: 0 });
  return app;
}

describe("looking", () => {
  test("sizes, without counters where no worker runs", async () => {
    const app = openApp();
    await post(app, "/v1/queues/emails/jobs", GOOD);
    await post(app, "/v1/queues/emails/jobs", GOOD, { "Eddy-Delay-Ms": "1000000" });
    expect((await ask(app, "/v1/queues")).json).toEqual({
      queues: [
        { queue: "emails", sizes: { ready: 1, delayed: 1, held: 0, dead: 0, paused: false }, stats: null },
        { queue: "notes", sizes: { ready: 0, delayed: 0, held: 0, dead: 0, paused: false }, stats: null },
      ],
    });
  });

  test("dead letters with their reasons; bodies only when asked for", async () => {
    const app = await withDeadLetter();
    const { json, text } = await ask(app, "/v1/queues/emails/dead");
    expect(json.jobs).toEqual([
      expect.objectContaining({ id: "bad", state: "dead", error: "the receiver is gone", attempts: 1 }),
    ]);
    expect(text).not.toContain("ada");
    const withBodies = await ask(app, "/v1/queues/emails/dead?bodies=true");
    expect(withBodies.json.jobs).toEqual([expect.objectContaining({ body: GOOD })]);
  });

  test("bytes that are no text come as base64", async () => {
    const broker = memoryBroker();
    const app = openApp({ broker });
    const queue = broker.queue("notes", { leaseMs: 1_000, requestTimeoutMs: 100, dedupeWindowMs: 1_000 });
    await queue.open();
    const job = { id: "b", headers: {}, priority: "normal", delayMs: 0, dedupe: false } as const;
    await queue.enqueue("r", [{ ...job, body: new Uint8Array([0xff, 0x00, 0x41]) }]);
    const { json } = await ask(app, "/v1/queues/notes/ready?bodies=true");
    expect(json.jobs).toEqual([expect.objectContaining({ bodyBase64: "/wBB" })]);
  });

  test("as many as asked for", async () => {
    const app = openApp();
    await post(app, "/v1/queues/notes/jobs", "a\nb\nc", { "Content-Type": "application/x-ndjson" });
    expect((await ask(app, "/v1/queues/notes/ready?limit=2")).json.jobs).toHaveLength(2);
    for (const limit of ["0", "-1", "1001", "x", "1e2", ""]) {
      expectRefusal(await ask(app, `/v1/queues/notes/ready?limit=${limit}`), 400, "invalid-limit");
    }
  });

  test("unknown queues, states and paths are 404", async () => {
    const app = openApp();
    const unknown = await ask(app, "/v1/queues/other/dead");
    expectRefusal(unknown, 404, "unknown-queue", "other");
    expect(unknown.text).toContain("emails, notes");
    for (const path of ["/", "/v1", "/v1/queues/emails", "/v1/queues/emails/lost"]) {
      expectRefusal(await ask(app, path), 404, "not-found");
    }
  });
});

describe("tending", () => {
  test("redrive puts dead letters back, and tells which ids are none's", async () => {
    const app = await withDeadLetter();
    const redrive = (options: unknown) => post(app, "/v1/queues/emails/redrive", JSON.stringify(options));
    const none = await redrive({ ids: ["other", "more", "other"] });
    expectRefusal(none, 404, "no-dead-letter");
    expect(none.json).toMatchObject({ redriven: 0, absent: ["other", "more"] });
    expectRefusal(await redrive({ ids: ["bad"], limit: 5 }), 422, "invalid-options");
    const some = await redrive({ ids: ["other", "bad", "bad"] });
    expect([some.status, some.json]).toEqual([200, { queue: "emails", redriven: 1, absent: ["other"] }]);
    expect((await ask(app, "/v1/queues/emails/ready")).json.jobs).toEqual([
      expect.objectContaining({ id: "bad", attempts: 0 }),
    ]);
    expect((await post(app, "/v1/queues/emails/redrive")).json).toEqual({ queue: "emails", redriven: 0 });
  });

  test("redrive that the broker fails in the middle of tells what was put back before", async () => {
    class FailingBroker extends MemoryBroker {
      override queue(...args: Parameters<MemoryBroker["queue"]>) {
        const queue = super.queue(...args);
        const redrive = queue.redrive?.bind(queue);
        queue.redrive = async (options) => {
          if (options.ids?.includes("cut")) throw new BrokerError("memory", "redrive", "The broker is gone");
          return (await redrive?.(options)) ?? 0;
        };
        return queue;
      }
    }
    const app = await withDeadLetter(new FailingBroker({ now: () => platform.now() }));
    const answer = await post(app, "/v1/queues/emails/redrive", '{"ids":["none","bad","cut","more"]}');
    expectRefusal(answer, 503, "broker-failed");
    expect(answer.json).toMatchObject({ redriven: 1, absent: ["none"] });
  });

  test("pause and resume", async () => {
    const app = openApp();
    expect((await post(app, "/v1/queues/emails/pause")).json).toEqual({ queue: "emails", paused: true });
    await post(app, "/v1/queues/emails/jobs", GOOD);
    expect((await post(app, "/v1/drain")).json).toMatchObject({ jobs: 0 });
    expect((await post(app, "/v1/queues/emails/resume")).json).toEqual({ queue: "emails", paused: false });
    expect((await post(app, "/v1/drain")).json).toMatchObject({ jobs: 1 });
  });

  test("clear removes the states named and no others", async () => {
    const app = await withDeadLetter();
    await post(app, "/v1/queues/emails/jobs", GOOD);
    const clear = (body: string) => post(app, "/v1/queues/emails/clear", body);
    expectRefusal(await clear(""), 422, "invalid-options");
    expectRefusal(await clear('{"states":[]}'), 422, "invalid-options");
    expectRefusal(await clear('{"states":["held"]}'), 422, "invalid-options");
    expectRefusal(await clear('{"states":["dead"],"sure":"hush"}'), 422, "invalid-options", "hush");
    const long = await clear(JSON.stringify({ states: ["dead"], ["k".repeat(50_000)]: 1 }));
    expectRefusal(long, 422, "invalid-options", "kkk");
    expectRefusal(await clear("{states: hush"), 400, "malformed-json", "hush");
    expectRefusal(await clear(`{"states":["dead"]${" ".repeat(70_000)}}`), 413, "too-large");
    expect((await clear('{"states":["dead"]}')).json).toEqual({ queue: "emails", cleared: 1 });
    expect((await ask(app, "/v1/queues/emails/ready")).json.jobs).toHaveLength(1);
  });

  test("what the broker does not offer is 501", async () => {
    class Bare extends MemoryBroker {
      override queue(...args: Parameters<MemoryBroker["queue"]>) {
        return Object.assign(super.queue(...args), { peek: undefined, pause: undefined });
      }
    }
    const app = openApp({ broker: new Bare({ now: () => platform.now() }) });
    expectRefusal(await ask(app, "/v1/queues/emails/dead"), 501, "not-offered");
    expectRefusal(await post(app, "/v1/queues/emails/pause"), 501, "not-offered");
  });
});

describe("draining", () => {
  test("keeps to its budget and reports", async () => {
    const app = openApp();
    await post(app, "/v1/queues/emails/jobs", `${GOOD}\n${GOOD}\n${GOOD}`, {
      "Content-Type": "application/x-ndjson",
    });
    const { status, json } = await post(app, "/v1/drain", '{"maxJobs":2,"queues":["emails"]}');
    expect([status, json]).toMatchObject([200, { jobs: 2, acked: 2, stopped: "jobs", left: 1 }]);
    expectRefusal(await post(app, "/v1/drain", '{"maxJobs":0}'), 422, "invalid-options");
    expectRefusal(await post(app, "/v1/drain", '{"queues":["hush"]}'), 404, "unknown-queue", "hush");
    expectRefusal(await post(openApp({ definition: undefined as never }), "/v1/drain"), 501, "not-offered");
  });

  test("refuses too few requests, with the least that would do", async () => {
    const app = openApp({ broker: new FaultyBroker({ platform }) });
    const refused = await post(app, "/v1/drain", '{"maxRequests":3,"queues":["emails"]}');
    expectRefusal(refused, 422, "invalid-options");
    expect(refused.text).toContain("maxRequests is 3; give 6 or more");
  });

  test("does not start with options that are no object", async () => {
    const app = openApp();
    await post(app, "/v1/queues/notes/jobs", "left");
    for (const options of ["[]", "null", "5", '"hush"', '["hush"]']) {
      expectRefusal(await post(app, "/v1/drain", options), 400, "malformed-json", "hush");
    }
    expect((await ask(app, "/v1/queues/notes/ready")).json.jobs).toHaveLength(1);
  });

  test("is refused while another one runs here, and allowed after it", async () => {
    const started = gate();
    const finish = gate();
    const app = openApp({
      definition: definitionOf(async () => {
        started.open();
        await finish.opened;
      }),
    });
    await post(app, "/v1/queues/emails/jobs", GOOD);
    const first = post(app, "/v1/drain");
    await started.opened;
    expectRefusal(await post(app, "/v1/drain"), 409, "draining");
    finish.open();
    expect((await first).json).toMatchObject({ acked: 1 });
    expect((await post(app, "/v1/drain")).json).toMatchObject({ jobs: 0, stopped: "empty" });
  });

  test("ends when its caller hangs up, and when the process stops", async () => {
    for (const how of ["caller", "process"] as const) {
      const started = gate();
      const finish = gate();
      const end = new AbortController();
      const app = openApp({
        definition: definitionOf(async () => {
          started.open();
          await finish.opened;
        }),
        ...(how === "process" ? { stopping: end.signal } : {}),
      });
      await post(app, "/v1/queues/emails/jobs", `${GOOD}\n${GOOD}`, {
        "Content-Type": "application/x-ndjson",
      });
      const run = ask(app, "/v1/drain", {
        method: "POST",
        ...(how === "caller" ? { signal: end.signal } : {}),
      });
      await started.opened;
      end.abort();
      finish.open();
      expect((await run).json).toMatchObject({ jobs: 1, acked: 1, stopped: "signal", left: 1 });
    }
  });
});

describe("health and metrics beside a worker", () => {
  async function running(handler?: (job: Job<{ to: string }>) => unknown) {
    const broker = memoryBroker();
    const definition = definitionOf(handler);
    const acked = gate();
    const worker = await startWorker(definition, {
      broker,
      platform,
      on: (event) => {
        if (event.type === "settled") acked.open();
      },
    });
    return { app: openApp({ broker, definition, worker }), worker, acked: acked.opened };
  }

  test("ok while it runs, 503 once it is told to stop", async () => {
    const { app, worker } = await running();
    expect(await ask(app, "/health")).toMatchObject({ status: 200, json: { status: "ok" } });
    const stopped = worker.stop();
    expect(await ask(app, "/health")).toMatchObject({ status: 503, json: { status: "worker-stopped" } });
    await stopped;
  });

  test("503 when the broker cannot be reached, and asking again and again asks it once", async () => {
    const broker = new RedisBroker({ url: `http://127.0.0.1:${await freePort()}`, token: "hush" });
    const app = openApp({ broker });
    const answers = await Promise.all(Array.from({ length: 50 }, () => ask(app, "/health")));
    for (const answer of answers) {
      expect(answer).toMatchObject({ status: 503, json: { status: "broker-unreachable" } });
    }
    expect(broker.requests).toBe(1);
  });

  test("numbers in Prometheus' format", async () => {
    const { app, worker, acked } = await running();
    await post(app, "/v1/queues/emails/jobs", GOOD);
    await acked;
    await post(app, "/v1/queues/notes/pause");
    const { status, text } = await ask(app, "/metrics");
    await worker.stop();
    expect(status).toBe(200);
    expect(text).toContain('eddy_acked_total{queue="emails"} 1\n');
    expect(text).toContain('eddy_queue_jobs{queue="emails",state="ready"} 0\n');
    expect(text).toContain('eddy_queue_paused{queue="notes"} 1\n');
    expect(text).toContain("eddy_broker_up 1\n");
    // A count of connections where messages are no requests.
    expect(text).toContain("# HELP eddy_broker_requests_total Requests made to the broker; on NATS, ");
    for (const line of text.trimEnd().split("\n")) {
      expect(line).toMatch(
        /^(# (HELP|TYPE) eddy_\w+ .+|eddy_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [-+.\de]+)$/,
      );
    }
    const names = [...text.matchAll(/^# TYPE (\w+)/gm)].map((match) => match[1]);
    expect(new Set(names).size).toBe(names.length);
  });

  test("the worker's numbers are told while the broker is gone", async () => {
    const { app, worker, acked } = await running();
    await post(app, "/v1/queues/emails/jobs", GOOD);
    await acked;
    const broker = new RedisBroker({ url: `http://127.0.0.1:${await freePort()}`, token: "hush" });
    const { status, text } = await ask(openApp({ broker, worker }), "/metrics");
    await worker.stop();
    expect(status).toBe(200);
    expect(text).toContain('eddy_acked_total{queue="emails"} 1\n');
    expect(text).toContain("eddy_broker_up 0\n");
    expect(text).not.toContain("eddy_queue_jobs");
  });

  test("reports the worker's counters with the sizes", async () => {
    const { app, worker } = await running();
    const { json } = await ask(app, "/v1/queues");
    await worker.stop();
    expect(json.queues).toMatchObject([
      { queue: "emails", stats: { queue: "emails", acked: 0 } },
      { queue: "notes", stats: { queue: "notes" } },
    ]);
  });
});

test("a fault inside is answered without its text, and logged by its kind", async () => {
  const logged: unknown[] = [];
  class Faulty extends MemoryBroker {
    override queue(): never {
      throw new Error("hush\n    at hush");
    }
  }
  const app = openApp({
    broker: new Faulty({ now: () => platform.now() }),
    log: (level, message, fields) => logged.push([level, message, fields]),
  });
  const answer = await ask(app, "/v1/queues");
  expect([answer.status, answer.json.code]).toEqual([500, "internal"]);
  expect(answer.text).not.toContain("hush");
  expect(JSON.stringify(logged)).toContain('"kind":"Error"');
  expect(JSON.stringify(logged)).not.toContain("hush");
});
