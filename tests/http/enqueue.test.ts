/** Taking jobs in over HTTP: one at a time and as NDJSON; nothing unfit, nothing too large, nothing quoted back. */
import { describe, expect, test } from "bun:test";
import { RedisBroker } from "../../adapters/redis/mod.ts";
import { type IngestStep, ingestLines } from "../../src/http/mod.ts";
import { BrokerError, Producer, queue } from "../../src/mod.ts";
import { freePort } from "../support/kept_server.ts";
import { ask, expectRefusal, memoryBroker, openApp, platform, post } from "./fixture.ts";

const GOOD = '{"to":"ada@example.com"}';
const NDJSON = { "Content-Type": "application/x-ndjson" };

/** A body that comes in pieces, without a length. */
function streamed(pieces: Iterable<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const iterator = pieces[Symbol.iterator]();
  const source: UnderlyingDefaultSource<Uint8Array> = {
    pull(controller) {
      const next = iterator.next();
      if (next.done) controller.close();
      else controller.enqueue(encoder.encode(next.value));
    },
  };
  // A piece is only made when it is asked for.
  return new ReadableStream(source, { highWaterMark: 0 });
}

describe("one job", () => {
  test("is taken in exactly as it was sent, with its options", async () => {
    const app = openApp();
    const body = '{ "to" : "ada@example.com", "n": 12345678901234567890, "é": "\\u00e9" }';
    const sent = await post(app, "/v1/queues/emails/jobs", body, {
      "Content-Type": "application/json",
      "Eddy-Id": "welcome-1",
      "Eddy-Delay-Ms": "60000",
      "Eddy-Priority": "high",
      "Eddy-Header-Trace": "abc",
    });
    expect([sent.status, sent.json]).toEqual([201, { id: "welcome-1", duplicate: false }]);
    const { json } = await ask(app, "/v1/queues/emails/delayed?bodies=true");
    expect(json.jobs).toEqual([
      expect.objectContaining({
        id: "welcome-1",
        body,
        priority: "high",
        headers: { trace: "abc" },
        attempts: 0,
      }),
    ]);
  });

  test("of an id that is there already is not added", async () => {
    const app = openApp();
    for (const [status, duplicate] of [
      [201, false],
      [200, true],
    ] as const) {
      const sent = await post(app, "/v1/queues/emails/jobs", GOOD, { "Eddy-Id": "once" });
      expect([sent.status, sent.json]).toEqual([status, { id: "once", duplicate }]);
    }
  });

  test("for an unknown queue is refused, naming the known ones", async () => {
    const answer = await post(openApp(), "/v1/queues/secret-queue/jobs", GOOD);
    expectRefusal(answer, 404, "unknown-queue", "secret-queue", "ada");
    expect(answer.json.queues).toEqual(["emails", "notes"]);
  });

  test("that does not fit the schema, is no JSON or no text is refused without being quoted", async () => {
    const app = openApp();
    expectRefusal(await post(app, "/v1/queues/emails/jobs", '{"to":"hush"}'), 422, "invalid-body", "hush");
    expectRefusal(await post(app, "/v1/queues/emails/jobs", '{"to":hush'), 422, "invalid-body", "hush");
    expectRefusal(
      await post(app, "/v1/queues/notes/jobs", new Uint8Array([0xc3, 0x28])),
      422,
      "invalid-body",
    );
    expect((await ask(app, "/v1/queues/emails/ready")).json.jobs).toEqual([]);
  });

  test("with options that cannot be used is refused, naming the header", async () => {
    const faulty = {
      "Eddy-Id": "a b",
      "Eddy-Delay-Ms": "-1",
      "Eddy-Priority": "urgent",
      "Eddy-Header-A.B": "x",
    };
    for (const [name, value] of Object.entries(faulty)) {
      const answer = await post(openApp(), "/v1/queues/emails/jobs", GOOD, { [name]: value });
      expectRefusal(answer, 400, "invalid-header");
      expect(answer.text.toLowerCase()).toContain(name.toLowerCase().replace("a.b", "…"));
    }
  });

  test("above the limit is refused while it is read, whatever it says of its length", async () => {
    const app = openApp({ maxBodyBytes: 1_000 });
    let pieces = 0;
    const endless = (function* () {
      for (;;) {
        pieces += 1;
        yield "hush".repeat(25);
      }
    })();
    const answer = await post(app, "/v1/queues/notes/jobs", streamed(endless), { "Content-Length": "10" });
    expectRefusal(answer, 413, "too-large", "hush");
    expect(pieces).toBeLessThan(20);
    expect((await post(app, "/v1/queues/notes/jobs", "x".repeat(1_001))).status).toBe(413);
    expect((await post(app, "/v1/queues/notes/jobs", "x".repeat(1_000))).status).toBe(201);
  });

  test("above what the broker takes is refused too", async () => {
    const broker = memoryBroker();
    const limit = broker.queue("notes", { leaseMs: 1_000, requestTimeoutMs: 100, dedupeWindowMs: 1_000 })
      .limits.maxBodyBytes;
    const app = openApp({ broker, maxBodyBytes: limit * 2 });
    expectRefusal(await post(app, "/v1/queues/notes/jobs", "x".repeat(limit + 1)), 413, "too-large");
  });

  test("that is compressed is refused", async () => {
    const answer = await post(openApp(), "/v1/queues/notes/jobs", "x", { "Content-Encoding": "gzip" });
    expectRefusal(answer, 415, "encoded");
  });

  test("for a broker that cannot be reached is answered with 503, without its token", async () => {
    const broker = new RedisBroker({ url: `http://127.0.0.1:${await freePort()}`, token: "hush-token" });
    const answer = await post(openApp({ broker }), "/v1/queues/emails/jobs", GOOD);
    expectRefusal(answer, 503, "broker-failed", "hush-token", "ada");
  });
});

describe("NDJSON", () => {
  test("each line is a job, a faulty one is named and the rest is not affected", async () => {
    const app = openApp();
    const lines = [
      GOOD,
      '{"to":"hush"}',
      "",
      "hush",
      '{"to":"bob@example.com" }',
      '{"to":"eve@example.com"}',
    ];
    const answer = await post(app, "/v1/queues/emails/jobs", streamed(lines.join("\n")), NDJSON);
    expect(answer.status).toBe(207);
    expect(answer.text).not.toContain("hush");
    expect(answer.json.accepted).toEqual(
      [1, 5, 6].map((line) => ({ line, id: expect.any(String), duplicate: false })),
    );
    expect(answer.json.rejected).toEqual([2, 4].map((line) => ({ line, reason: expect.any(String) })));
    const { json } = await ask(app, "/v1/queues/emails/ready?bodies=true");
    expect((json.jobs as { body: string }[]).map((job) => job.body)).toEqual([
      lines[0]!,
      lines[4]!,
      lines[5]!,
    ]);
  });

  test("is 200 when every line was accepted and 422 when none was", async () => {
    expect((await post(openApp(), "/v1/queues/emails/jobs", `${GOOD}\n${GOOD}\n`, NDJSON)).status).toBe(200);
    expect((await post(openApp(), "/v1/queues/emails/jobs", "1\n2\n", NDJSON)).status).toBe(422);
  });

  test("that came without its line ends is told how they may have got lost; other faults are not", async () => {
    const send = (body: string) => post(openApp(), "/v1/queues/emails/jobs", body, NDJSON);
    const joined = await send(GOOD + GOOD);
    expect([joined.status, joined.json]).toEqual([
      422,
      {
        accepted: [],
        rejected: [{ line: 1, reason: expect.stringContaining("as JSON: it is malformed") }],
        hint: expect.stringContaining("--data-binary"),
      },
    ]);
    for (const body of [GOOD, "1", "1\n{", `${GOOD}\n{`])
      expect(await send(body).then((one) => one.json)).not.toHaveProperty("hint");
  });

  test("options hold for every line", async () => {
    const app = openApp();
    await post(app, "/v1/queues/emails/jobs", `${GOOD}\n${GOOD}`, { ...NDJSON, "Eddy-Priority": "low" });
    const { json } = await ask(app, "/v1/queues/emails/ready");
    expect((json.jobs as { priority: string }[]).map((job) => job.priority)).toEqual(["low", "low"]);
  });

  test("an id names every line by its number: sent again, only what is missing is added", async () => {
    const app = openApp();
    const named = { ...NDJSON, "Eddy-Id": "upload" };
    const first = await post(app, "/v1/queues/emails/jobs", `${GOOD}\n\n${GOOD}\n`, named);
    expect(first.json.accepted).toEqual([
      { line: 1, id: "upload.1", duplicate: false },
      { line: 3, id: "upload.3", duplicate: false },
    ]);
    const again = await post(app, "/v1/queues/emails/jobs", `${GOOD}\n\n${GOOD}\n${GOOD}\n`, named);
    expect(again.json.accepted).toEqual([
      { line: 1, id: "upload.1", duplicate: true },
      { line: 3, id: "upload.3", duplicate: true },
      { line: 4, id: "upload.4", duplicate: false },
    ]);
    const { json } = await ask(app, "/v1/queues/emails/ready");
    expect((json.jobs as { id: string }[]).map(({ id }) => id)).toEqual(["upload.1", "upload.3", "upload.4"]);
    for (const id of ["x".repeat(200), "a b"]) {
      expectRefusal(
        await post(app, "/v1/queues/emails/jobs", GOOD, { ...NDJSON, "Eddy-Id": id }),
        400,
        "invalid-header",
      );
    }
  });

  test("a line above the limit is rejected by itself", async () => {
    const app = openApp({ maxBodyBytes: 30 });
    const answer = await post(app, "/v1/queues/notes/jobs", `a\n${"b".repeat(31)}\nc`, NDJSON);
    expect(answer.status).toBe(207);
    expect(answer.json.rejected).toEqual([{ line: 2, reason: "The body is above the limit of 30 bytes" }]);
  });

  test("a request that is too large is cut, and what was taken is told", async () => {
    const app = openApp({ maxRequestBytes: 100 });
    const endless = (function* () {
      for (;;) yield '"hush-hush"\n';
    })();
    const answer = await post(app, "/v1/queues/notes/jobs", streamed(endless), NDJSON);
    expectRefusal(answer, 413, "too-large", "hush");
    const taken = (answer.json.accepted as unknown[]).length;
    expect(taken).toBe(8);
    expect(answer.json.unsentFrom).toBe(9);
    const { json } = await ask(app, "/v1/queues/notes/ready");
    expect((json.jobs as unknown[]).length).toBe(taken);
  });

  test("so is one of too many lines", async () => {
    const app = openApp({ maxLines: 10 });
    const many = Array.from({ length: 50 }, () => "x\n");
    const answer = await post(app, "/v1/queues/notes/jobs", streamed(many), NDJSON);
    expectRefusal(answer, 413, "too-large");
    expect(answer.json.unsentFrom).toBe(12);
  });

  test("for a broker that cannot be reached says which lines are not in", async () => {
    const broker = memoryBroker();
    const app = openApp({ broker });
    await post(app, "/v1/queues/emails/jobs", GOOD);
    const lines = (function* () {
      yield `${GOOD}\n${GOOD}\n`;
      // The connection goes between two chunks of one request.
      platform.keepAlive(broker.close());
      yield `${GOOD}\n${GOOD}\n`;
    })();
    const answer = await post(app, "/v1/queues/emails/jobs", streamed(lines), NDJSON);
    expectRefusal(answer, 503, "broker-failed");
    expect((answer.json.accepted as { line: number }[]).map(({ line }) => line)).toEqual([1, 2]);
    expect(answer.json).toMatchObject({ uncertain: [3, 4], unsentFrom: 5, rejected: [] });
  });

  test("for a queue that cannot be opened is known not to be in", async () => {
    const broker = new RedisBroker({ url: `http://127.0.0.1:${await freePort()}`, token: "t" });
    const options = { producer: new Producer({ broker, platform }), queue: queue("q"), maxBodyBytes: 100 };
    const steps: IngestStep[] = [];
    for await (const step of ingestLines(streamed(["1\nno json\n2\n"]), options)) steps.push(step);
    expect(steps).toEqual([
      {
        accepted: [],
        rejected: [{ line: 2, reason: expect.any(String) }],
        failed: { error: expect.any(BrokerError), uncertain: [], unsentFrom: 1 },
      },
    ]);
    const answer = await post(openApp({ broker }), "/v1/queues/emails/jobs", `${GOOD}\n${GOOD}`, NDJSON);
    expectRefusal(answer, 503, "broker-failed");
    expect(answer.json).toMatchObject({ accepted: [], rejected: [], uncertain: [], unsentFrom: 1 });
  });
});

test("without a definition every well-formed queue is served", async () => {
  const app = openApp({ definition: undefined as never });
  expect((await post(app, "/v1/queues/anything/jobs", "[1]")).status).toBe(201);
  expectRefusal(await post(app, "/v1/queues/anything/jobs", "no json"), 422, "invalid-body");
  expectRefusal(await post(app, "/v1/queues/any.thing/jobs", "[1]"), 404, "unknown-queue", "any.thing");
});
