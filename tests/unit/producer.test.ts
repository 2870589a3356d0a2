import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import * as v from "valibot";
import { BrokerError, BrokerRefusedError, EnqueueError, InvalidBodyError } from "../../src/errors.ts";
import { Producer } from "../../src/producer.ts";
import { type QueueDefinition, queue } from "../../src/queue.ts";
import { LINK_FAULT } from "../support/faulty_broker.ts";
import { noStrayRejections, World, type WorldOptions } from "../support/world.ts";

noStrayRejections();

function setUp(options: WorldOptions = {}) {
  const world = new World(options);
  const producer = new Producer({ broker: world.broker, platform: world.platform, requestTimeoutMs: 1_000 });
  return { world, producer };
}

const work = queue<unknown>("work");
const bodies = (count: number, body: unknown = 1) => Array.from({ length: count }, () => ({ body }));

async function failure(act: Promise<unknown>): Promise<Error> {
  try {
    await act;
  } catch (error) {
    return error as Error;
  }
  throw new Error("it did not fail");
}

describe("an enqueue", () => {
  test("of one job answers its id, and the job is what was given", async () => {
    const { world, producer } = setUp();
    const answer = await producer.enqueue(
      work,
      { to: "ada" },
      { priority: "high", headers: { "x-trace": "7" } },
    );
    expect(answer).toEqual({ id: expect.any(String), duplicate: false });
    expect((await world.peek("ready"))[0]).toMatchObject({
      id: answer.id,
      body: '{"to":"ada"}',
      priority: "high",
      headers: { "x-trace": "7" },
      attempts: 0,
    });
  });

  test("of none sends nothing", async () => {
    const { world, producer } = setUp();
    expect(await producer.enqueueMany(work, [])).toEqual([]);
    expect(world.broker.count()).toBe(0);
  });

  test("gives each job an id of its own, answered in order", async () => {
    const { world, producer } = setUp();
    const answers = await producer.enqueueMany(work, [{ body: 1, id: "mine" }, { body: 2 }, { body: 3 }]);
    expect(answers[0]?.id).toBe("mine");
    expect(new Set(answers.map((one) => one.id)).size).toBe(3);
    expect((await world.peek("ready")).map((one) => one.id)).toEqual(answers.map((one) => one.id));
  });

  test("delays by the broker's clock", async () => {
    const { world, producer } = setUp();
    await producer.enqueue(work, 1, { delayMs: 5_000 });
    expect(await world.sizes()).toMatchObject({ ready: 0, delayed: 1 });
    await world.platform.pass(5_000);
    expect(await world.sizes()).toMatchObject({ ready: 1, delayed: 0 });
  });

  test("opens its queue once, and again after a failure", async () => {
    const { world, producer } = setUp();
    world.broker.fault = (asked) => (asked.verb === "open" && asked.nth === 0 ? "lost" : undefined);
    expect(await failure(producer.enqueue(work, 1))).toBeInstanceOf(BrokerError);
    expect(world.broker.count("enqueue")).toBe(0);
    await Promise.all([producer.enqueue(work, 1), producer.enqueue(work, 2), producer.enqueue(work, 3)]);
    expect(world.broker.count("open")).toBe(2);
  });

  test("does not see what the caller does to its objects later", async () => {
    const { world, producer } = setUp({ roundTripMs: 10 });
    const headers: Record<string, string> = { "x-a": "1" };
    const sent = producer.enqueueMany(work, [{ body: { a: 1 }, headers }]);
    headers["x-a"] = "2";
    await world.platform.run(sent);
    expect((await world.peek("ready"))[0]?.headers).toEqual({ "x-a": "1" });
  });
});

describe("an id of the caller's own", () => {
  test("keeps a second job of it out, within the window and no longer", async () => {
    const { world, producer } = setUp();
    const windowed = queue<unknown>("work", { dedupeWindowMs: 1_000 });
    expect((await producer.enqueue(windowed, 1, { id: "x" })).duplicate).toBe(false);
    await world.platform.pass(900);
    expect((await producer.enqueue(windowed, 2, { id: "x" })).duplicate).toBe(true);
    await world.platform.pass(200);
    expect((await producer.enqueue(windowed, 3, { id: "x" })).duplicate).toBe(false);
    expect((await world.peek("ready")).map((one) => one.body)).toEqual(["1", "3"]);
  });

  test("one made up never does", async () => {
    const { world, producer } = setUp();
    await producer.enqueueMany(work, bodies(500));
    expect(world.broker.of("enqueue")[0]?.enqueue?.jobs.every((job) => job.dedupe)).toBe(false);
    expect((await world.sizes()).ready).toBe(500);
  });
});

describe("many jobs", () => {
  test("go in requests of as many as the broker takes", async () => {
    const { world, producer } = setUp({ limits: { maxEnqueue: 30 } });
    await producer.enqueueMany(work, bodies(100));
    expect(world.broker.of("enqueue").map((asked) => asked.enqueue?.jobs.length)).toEqual([30, 30, 30, 10]);
    expect(new Set(world.broker.of("enqueue").map((asked) => asked.enqueue?.requestId)).size).toBe(4);
    expect((await world.sizes()).ready).toBe(100);
  });

  test("and of no more than a million bytes, but each of at least one job", async () => {
    const { world, producer } = setUp();
    const text = queue<unknown>("work", { codec: "text" });
    await producer.enqueueMany(text, [
      ...bodies(5, "x".repeat(400_000)),
      ...bodies(1, "y".repeat(3_000_000)),
      ...bodies(2, "é".repeat(300_000)),
    ]);
    expect(world.broker.of("enqueue").map((asked) => asked.enqueue?.jobs.length)).toEqual([2, 2, 1, 1, 1, 1]);
  });

  test("arrive in order, whatever their sizes", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 700_000 }), { maxLength: 12 }),
        fc.integer({ min: 1, max: 5 }),
        async (sizes, maxEnqueue) => {
          const { world, producer } = setUp({ limits: { maxEnqueue } });
          const text = queue<unknown>("work", { codec: "text" });
          const answers = await producer.enqueueMany(
            text,
            sizes.map((size) => ({ body: "x".repeat(size) })),
          );
          expect((await world.peek("ready")).map((one) => one.id)).toEqual(answers.map((one) => one.id));
          for (const { enqueue } of world.broker.of("enqueue")) {
            const jobs = enqueue?.jobs ?? [];
            expect(jobs.length).toBeGreaterThan(0);
            expect(jobs.length).toBeLessThanOrEqual(maxEnqueue);
            const bytes = jobs.reduce((sum, job) => sum + job.body.length, 0);
            expect(jobs.length === 1 || bytes <= 1_000_000).toBe(true);
          }
        },
      ),
      { numRuns: 30 },
    );
  });
});

describe("a request that fails", () => {
  for (const fault of ["lost", "replyLost", "hangs", "hangsAfter", "throws", "repeated"] as const) {
    test(`${fault}: it is sent again under its own id, and nothing is added twice`, async () => {
      const { world, producer } = setUp();
      world.broker.fault = (asked) => (asked.verb === "enqueue" && asked.nth < 2 ? fault : undefined);
      const answers = await world.platform.run(producer.enqueueMany(work, bodies(10)));
      expect(answers.every((one) => !one.duplicate)).toBe(true);
      expect(new Set(world.broker.of("enqueue").map((asked) => asked.enqueue?.requestId)).size).toBe(1);
      expect((await world.peek("ready")).map((one) => one.id)).toEqual(answers.map((one) => one.id));
    });
  }

  test("an engine that does not know request ids is asked once", async () => {
    const { world, producer } = setUp({ lacks: ["dedupe"] });
    world.broker.fault = (asked) => (asked.verb === "enqueue" ? "replyLost" : undefined);
    expect(await failure(world.platform.run(producer.enqueue(work, 1)))).toBeInstanceOf(EnqueueError);
    expect(world.broker.count("enqueue")).toBe(1);
  });

  test("again and again: an EnqueueError says how many were accepted and of how many it is not known", async () => {
    const { world, producer } = setUp({ limits: { maxEnqueue: 10 } });
    world.broker.fault = (asked) => (asked.verb === "enqueue" && asked.nth >= 2 ? "replyLost" : undefined);
    const error = await failure(world.platform.run(producer.enqueueMany(work, bodies(35, "the secret"))));
    expect(error).toBeInstanceOf(EnqueueError);
    expect(error).toMatchObject({ accepted: 20, uncertain: 10 });
    expect(error.message).toBe(
      `Cannot enqueue to work: ${LINK_FAULT} (20 of 35 jobs were accepted; whether the next 10 were is not known)`,
    );
    expect(error.cause).toBeInstanceOf(BrokerError);
    expect(world.broker.count("enqueue")).toBe(2 + 3);
    expect((await world.sizes()).ready).toBe(30);
    expect(`${error.message} ${error.stack}`).not.toContain("secret");
  });

  test("of what no try changed it is known, but not where one try may have", async () => {
    for (const [first, uncertain, rest] of [
      ["full", 0, "no other one was"],
      ["replyLost", 10, "whether the next 10 were is not known"],
    ] as const) {
      const { world, producer } = setUp({ limits: { maxEnqueue: 10 } });
      world.broker.fault = (asked) =>
        asked.verb === "enqueue" && asked.nth >= 1 ? (asked.nth === 1 ? first : "full") : undefined;
      const error = await failure(world.platform.run(producer.enqueueMany(work, bodies(35))));
      expect(error).toBeInstanceOf(EnqueueError);
      expect(error).toMatchObject({ accepted: 10, uncertain });
      expect(error.message).toBe(
        `Cannot enqueue to work: ${LINK_FAULT} (10 of 35 jobs were accepted; ${rest})`,
      );
    }
  });

  test("refused at first: nothing was enqueued, and the refusal is passed on", async () => {
    const { world, producer } = setUp();
    world.broker.fault = (asked) => (asked.verb === "enqueue" ? "refused" : undefined);
    expect(await failure(producer.enqueue(work, 1))).toBeInstanceOf(BrokerRefusedError);
    expect(world.broker.count("enqueue")).toBe(1);
  });

  test("refused half-way: what was accepted is told", async () => {
    const { world, producer } = setUp({ limits: { maxEnqueue: 10 } });
    world.broker.fault = (asked) => (asked.verb === "enqueue" && asked.nth === 1 ? "refused" : undefined);
    const error = await failure(producer.enqueueMany(work, bodies(30)));
    expect(error).toBeInstanceOf(EnqueueError);
    expect(error).toMatchObject({ accepted: 10, uncertain: 0 });
    expect(error.cause).toBeInstanceOf(BrokerRefusedError);
  });

  test("refused after a try whose answer was lost: it is not said that nothing was enqueued", async () => {
    const { world, producer } = setUp();
    world.broker.fault = (asked) =>
      asked.verb === "enqueue" ? (asked.nth === 0 ? "replyLost" : "refused") : undefined;
    const error = await failure(world.platform.run(producer.enqueue(work, 1)));
    expect(error).toBeInstanceOf(EnqueueError);
    expect(error).toMatchObject({ accepted: 0, uncertain: 1 });
    expect(error.cause).toBeInstanceOf(BrokerRefusedError);
    expect(await world.peek("ready")).toHaveLength(1);
  });
});

describe("a faulty job", () => {
  const emails = queue("work", { body: v.object({ to: v.pipe(v.string(), v.email()) }) });

  test("is named by its index, and nothing is sent", async () => {
    const { world, producer } = setUp();
    const jobs = [...bodies(3, { to: "a@b.example" }), ...bodies(1, { to: "no secret" })] as {
      body: { to: string };
    }[];
    const error = await failure(producer.enqueueMany(emails, jobs));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toBe(
      "Cannot enqueue job 3 to work: The body does not fit the queue's schema at: to",
    );
    expect(world.broker.count()).toBe(0);
  });

  test("whose body is invalid throws what a program can tell by, and that quotes no value", async () => {
    const { producer } = setUp();
    const list = queue("work", { body: v.object({ to: v.array(v.pipe(v.string(), v.email())) }) });
    const body = { to: ["a@b.example", "a secret", "a secret"] };
    const given = await failure(producer.enqueue(list, body));
    const raw = await failure(
      producer.enqueueRaw(list, [{ body: '{"to":[]}' }, { body: JSON.stringify(body) }]),
    );
    for (const [error, index] of [[given, 0] as const, [raw, 1] as const]) {
      expect(error).toBeInstanceOf(InvalidBodyError);
      expect(error).toMatchObject({
        name: "InvalidBodyError",
        queue: "work",
        index,
        reason: "The body does not fit the queue's schema at: to.1, to.2",
        issues: [
          { path: "to.1", message: "It does not fit the queue's schema" },
          { path: "to.2", message: "It does not fit the queue's schema" },
        ],
      });
      expect(JSON.stringify(error) + error.message + error.stack).not.toContain("a secret");
    }
    const many = await failure(
      producer.enqueue(list, { to: Array.from({ length: 1_000 }, () => "a secret") }),
    );
    expect((many as InvalidBodyError).issues).toHaveLength(20);
  });

  test("whose body its codec does not take is invalid too; one whose options are faulty is not", async () => {
    const { producer } = setUp();
    const text = queue<unknown>("work", { codec: "text" });
    const faulty = [
      producer.enqueue(work, undefined),
      producer.enqueue(text, "\ud800"),
      producer.enqueueRaw(work, [{ body: "no json" }]),
      producer.enqueueRaw(text, [{ body: "\ud800" }]),
    ];
    for (const attempt of faulty) {
      const error = await failure(attempt);
      expect(error).toBeInstanceOf(InvalidBodyError);
      const { reason, issues } = error as InvalidBodyError;
      expect(issues).toEqual([{ path: "", message: reason }]);
    }
    expect(await failure(producer.enqueue(work, 1, { id: "" }))).not.toBeInstanceOf(InvalidBodyError);
    expect(await failure(producer.enqueueRaw(work, [{ body: 5 as never }]))).not.toBeInstanceOf(
      InvalidBodyError,
    );
  });

  test("is one whose body the worker could not use, though the value given fits", async () => {
    const { world, producer } = setUp();
    const dated = queue("work", { body: v.object({ at: v.date() }) });
    const error = await failure(producer.enqueue(dated, { at: new Date() }));
    expect(error.message).toContain("at: at");
    expect(world.broker.count()).toBe(0);
  });

  test("has no form in the queue's codec", async () => {
    const { world, producer } = setUp();
    const cycle: Record<string, unknown> = { secret: 1 };
    cycle.self = cycle;
    const odd = {
      toJSON() {
        throw new Error("a secret");
      },
    };
    for (const body of [undefined, () => {}, 5n, cycle, odd]) {
      const error = await failure(producer.enqueue(work, body));
      expect(error).toBeInstanceOf(TypeError);
      expect(error.message).toStartWith("Cannot enqueue job 0 to work: cannot enqueue a body: ");
      expect(`${error.message} ${String(error.cause)}`).not.toContain("secret");
    }
    const text = queue<unknown>("work", { codec: "text" });
    expect((await failure(producer.enqueue(text, 5))).message).toContain(
      'give a string or use the codec "json"',
    );
    expect((await failure(producer.enqueue(text, "\ud800"))).message).toContain("surrogate");
    const bytes = queue<unknown>("work", { codec: "bytes" });
    expect((await failure(producer.enqueue(bytes, "text"))).message).toContain("give a Uint8Array");
    expect(world.broker.count()).toBe(0);
  });

  const options: [string, unknown, string][] = [
    ["id", "", "id is 0 characters; use 1 to 200 printable"],
    ["id", "a b", "id is 3 characters; use 1 to 200 printable"],
    ["id", "a|b", "id is 3 characters"],
    ["id", "x".repeat(201), "id is 201 characters"],
    ["id", 5, "id is a number"],
    ["delayMs", -1, "delayMs is -1; give whole milliseconds from 0 on"],
    ["delayMs", 1.5, "delayMs is 1.5"],
    ["delayMs", Number.NaN, "delayMs is NaN"],
    ["delayMs", "5", "delayMs is a string"],
    ["priority", "urgent", 'priority is a string; use "high", "normal" or "low"'],
    ["headers", { "X-Up": "1" }, "headers is faulty in a name; use lower-case letters"],
    ["headers", { "x-up": "line\nbreak" }, "headers.x-up is a string; give printable ASCII"],
    ["headers", { "x-up": 5 }, "headers.x-up is a number"],
    ["headers", null, "headers is null; give an object"],
    ["headers", "x", "headers is a string; give an object"],
    ["headers", ["a"], "headers is an array; give an object"],
    ["headers", new Map([["a", "b"]]), "headers is a Map; give an object"],
    ["headers", new Headers({ a: "b" }), "headers is a Headers; give an object"],
    ["delay", 5, "delay is no option; use some of body, id, delayMs"],
  ];
  for (const [field, value, message] of options) {
    test(`${field} ${JSON.stringify(value)?.slice(0, 30)}: refused`, async () => {
      const { world, producer } = setUp();
      const error = await failure(producer.enqueueMany(work, [{ body: 1 }, { body: 1, [field]: value }]));
      expect(error).toBeInstanceOf(TypeError);
      expect(error.message).toStartWith(`Cannot enqueue job 1 to work: ${message}`);
      expect(world.broker.count()).toBe(0);
    });
  }

  test("too large a body: refused with its size and the limit, before anything is sent", async () => {
    const { world, producer } = setUp({ limits: { maxBodyBytes: 100 } });
    const text = queue<unknown>("work", { codec: "text" });
    const error = await failure(
      producer.enqueueMany(text, [...bodies(1, "x".repeat(100)), ...bodies(1, "é".repeat(51))]),
    );
    expect(error).toBeInstanceOf(RangeError);
    expect(error.message).toContain("the body of job 1 is 102 bytes; the faulty broker takes 100 at most");
    expect(world.broker.count("enqueue")).toBe(0);
  });
});

describe("bodies given as they are", () => {
  test("are sent byte for byte", async () => {
    const { world, producer } = setUp();
    const raw = '{ "id": 9007199254740993123,  "a":\t1 }';
    const bytes = new TextEncoder().encode('"as bytes"');
    await producer.enqueueRaw(work as QueueDefinition, [{ body: raw }, { body: bytes }]);
    const seen = (await world.peek("ready")).map((one) => one.body);
    expect(seen[0]).toBe(raw);
    expect(seen[1]).toEqual(bytes);
  });

  test("are what they were at the call, whatever becomes of the caller's own", async () => {
    const fill = new Uint8Array(1);
    const value = { n: 0 };
    const raw = queue("work", { codec: "bytes" }) as QueueDefinition;
    const slow = queue("work", { body: { "~standard": { version: 1, vendor: "t", validate: slowly } } });
    const { world, producer } = setUp();
    async function slowly(given: unknown) {
      await world.platform.sleep(1);
      return { value: given };
    }
    const sent: Promise<unknown>[] = [];
    for (let n = 0; n < 4; n += 1) {
      fill[0] = n;
      value.n = n;
      // Each waits for something before it is sent: for the queue to open, or for its schema.
      if (n % 2 === 0) sent.push(producer.enqueue(raw, fill), producer.enqueueRaw(raw, [{ body: fill }]));
      sent.push(producer.enqueueMany(slow, [{ body: value }, { body: value }]));
    }
    await world.platform.run(Promise.all(sent));
    const seen = (await world.peek("ready")).map(({ body }) =>
      typeof body === "string" ? JSON.parse(body).n : body[0],
    );
    expect(seen.toSorted()).toEqual([0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3]);
  });

  test("cannot be read once their memory was given away, which is told", async () => {
    const { world, producer } = setUp();
    const bytes = new Uint8Array(4);
    structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
    for (const sent of [
      producer.enqueue(queue("work", { codec: "bytes" }) as QueueDefinition, bytes),
      producer.enqueueRaw(queue("work", { codec: "bytes" }) as QueueDefinition, [{ body: bytes }]),
    ]) {
      expect((await failure(sent)).message).toBe(
        "Cannot enqueue job 0 to work: body is an array whose memory was given away; enqueue it before that, or a copy",
      );
    }
    expect(world.broker.log).toEqual([]);
  });

  test("are checked as the worker will", async () => {
    const { world, producer } = setUp();
    const checked = queue("work", { body: v.number() }) as unknown as QueueDefinition;
    expect((await failure(producer.enqueueRaw(checked, [{ body: '"x"' }]))).message).toContain(
      "does not fit",
    );
    expect((await failure(producer.enqueueRaw(checked, [{ body: "{secret" }]))).message).toContain(
      "malformed",
    );
    expect((await failure(producer.enqueueRaw(checked, [{ body: 5 as never }]))).message).toContain(
      "body is a number; give a string or a Uint8Array",
    );
    expect((await failure(producer.enqueueRaw(checked, [{ body: "\ud800" }]))).message).toContain(
      "surrogate",
    );
    expect(world.broker.count()).toBe(0);
  });
});
