/** Streams and consumers that could lose jobs are refused, with a sentence that names the setting; logins, too. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nkeys } from "nats.ws";
import { NatsBroker, type NatsBrokerOptions } from "../../adapters/nats/mod.ts";
import { bunPlatform } from "../../runtimes/bun/platform.ts";
import { chooseBroker } from "../../runtimes/cli/broker_spec.ts";
import { connectBroker } from "../../runtimes/cli/brokers.ts";
import type { BrokerQueue, QueueSettings } from "../../src/broker.ts";
import { defineWorker, queue as named, startWorker } from "../../src/mod.ts";
import { ids, idsOf, job, leaseId, put, settle, take } from "../support/conformance_steps.ts";
import { natsForFile } from "../support/nats_fixture.ts";
import { startNats } from "../support/nats_server.ts";

setDefaultTimeout(30_000);

const SETTINGS: QueueSettings = { leaseMs: 30_000, requestTimeoutMs: 5_000, dedupeWindowMs: 600_000 };

const nats = natsForFile();

/** What opening a queue ends with, as text. */
async function refusal(
  name: string,
  options: Partial<NatsBrokerOptions> = {},
  settings: Partial<QueueSettings> = {},
): Promise<string> {
  const failed = await nats
    .connect(options)
    .queue(name, { ...SETTINGS, ...settings })
    .open()
    .then(
      () => undefined,
      (error: unknown) => error,
    );
  if (failed === undefined) return "it was opened";
  const { name: kind, message } = failed as Error;
  return kind === "BrokerRefusedError" ? message : `${kind}: ${message}`;
}

function jobsStream(name: string, more: Record<string, unknown> = {}) {
  return {
    name: `EDDY_JOBS_${name}`,
    subjects: [`eddy.jobs.${name}`, `eddy.jobs.${name}.>`],
    retention: "workqueue",
    storage: "file",
    discard: "new",
    duplicate_window: 600e9,
    allow_rollup_hdrs: true,
    republish: { src: `eddy.jobs.${name}.>`, dest: `eddy.news.${name}.>`, headers_only: true },
    ...more,
  };
}

describe("names that differ in case only", () => {
  async function open(name: string, prefix?: string): Promise<BrokerQueue> {
    const queue = nats.connect({ prefix }).queue(name, SETTINGS);
    await queue.open();
    return queue;
  }

  test("of queues are two: each has its own jobs", async () => {
    const name = nats.name();
    const [lower, upper] = [await open(name), await open(name.toUpperCase())];
    await put(lower, "lower");
    await put(upper, "upper");
    expect(ids(await take(lower, 5))).toEqual(["lower"]);
    expect(ids(await take(upper, 5))).toEqual(["upper"]);
  });

  test("of prefixes have the same subjects: the second one is refused, and told whose they are", async () => {
    const name = nats.name();
    const queue = await open(name, "CASED");
    await put(queue, "mine");
    const text = await refusal(name, { prefix: "Cased" });
    expect(text).toStartWith(`Cannot open queue ${name}: its subjects (cased.`);
    expect(text).toContain(`are those of another stream already (CASED_DEAD_${name})`);
    expect(text).toContain("use another prefix, in more than the case of its letters");
    expect(ids(await take(queue, 5))).toEqual(["mine"]);
    expect(await refusal(name, { prefix: "OTHER" })).toBe("it was opened");
  });
});

describe("a stream that is there", () => {
  const faults: [string, Record<string, unknown>, string[]][] = [
    ["drops its oldest jobs", { max_msgs: 1000, discard: "old" }, ["max_msgs", 'discard "old"', 'to "new"']],
    ["drops its oldest bytes", { max_bytes: 1e6, discard: "old" }, ["max_bytes", 'discard "old"']],
    ["drops jobs of a subject", { max_msgs_per_subject: 5 }, ["max_msgs_per_subject"]],
    ["drops old jobs", { max_age: 3600e9, duplicate_window: 60e9 }, ["max_age", "to 0"]],
    ["is kept in memory", { storage: "memory" }, ["memory", 'storage: "memory"']],
    ["confirms nothing", { no_ack: true }, ["no_ack"]],
    ["keeps finished jobs", { retention: "limits" }, ['retention "limits"', '"workqueue"']],
    ["drops unseen jobs", { retention: "interest" }, ['retention "interest"', '"workqueue"']],
    ["cannot be paused", { allow_rollup_hdrs: false }, ["allow_rollup_hdrs"]],
    ["tells no news", { republish: undefined }, ["republish"]],
    ["denies deletes", { deny_delete: true }, ["deny_delete"]],
  ];
  test.each(faults)("refused: it %s", async (_, more, words) => {
    const name = nats.name();
    const made = await nats.operator.api<{ error?: unknown }>(
      `STREAM.CREATE.EDDY_JOBS_${name}`,
      jobsStream(name, more),
    );
    expect(made.error).toBeUndefined();
    const text = await refusal(name);
    expect(text).toStartWith(`Cannot open queue ${name}: the stream EDDY_JOBS_${name} `);
    for (const word of words) expect(text).toContain(word);
  });

  test("refused: it lacks a subject", async () => {
    const name = nats.name();
    await nats.operator.api(
      `STREAM.CREATE.EDDY_JOBS_${name}`,
      jobsStream(name, { subjects: [`eddy.jobs.${name}`], republish: undefined }),
    );
    expect(await refusal(name)).toContain(`lacks the subject eddy.jobs.${name}.high; add it`);
  });

  test("refused: the one for dead letters forgets", async () => {
    const name = nats.name();
    await nats.operator.api(`STREAM.CREATE.EDDY_DEAD_${name}`, {
      name: `EDDY_DEAD_${name}`,
      subjects: [`eddy.dead.${name}`],
      max_age: 86_400e9,
    });
    expect(await refusal(name)).toContain(`the stream EDDY_DEAD_${name} has a max_age`);
  });

  test("used as it is when it is sound, its window lengthened where it is too short", async () => {
    const name = nats.name();
    await nats.operator.api(
      `STREAM.CREATE.EDDY_JOBS_${name}`,
      jobsStream(name, { duplicate_window: 1e9, max_bytes: 1e8 }),
    );
    expect(await refusal(name)).toBe("it was opened");
    const { config } = await nats.operator.api<{ config: { duplicate_window: number; max_bytes: number } }>(
      `STREAM.INFO.EDDY_JOBS_${name}`,
    );
    expect([config.duplicate_window, config.max_bytes]).toEqual([600e9, 1e8]);
    expect(await refusal(name, {}, { dedupeWindowMs: 1000 })).toBe("it was opened");
  });

  test("memory, where it is asked for", async () => {
    const name = nats.name();
    expect(await refusal(name, { storage: "memory" })).toBe("it was opened");
    const { config } = await nats.operator.api<{ config: { storage: string } }>(
      `STREAM.INFO.EDDY_JOBS_${name}`,
    );
    expect(config.storage).toBe("memory");
    expect(await refusal(name)).toContain("is kept in memory");
  });

  test("a full one refuses jobs and says how to go on; what it took is known", async () => {
    const name = nats.name();
    await nats.operator.api(`STREAM.CREATE.EDDY_JOBS_${name}`, jobsStream(name, { max_msgs: 5 }));
    const queue = nats.connect().queue(name, SETTINGS);
    await queue.open();
    const jobs = ["a", "b", "c", "d", "e", "f", "g"].map((id) => job(id));
    await expect(queue.enqueue("request", jobs)).rejects.toThrow(
      "it is full: make room, or raise what it or the server's store may take (2 of 7 jobs; sending the same request again adds only what is missing)",
    );
    const deliveries = await take(queue);
    expect(ids(deliveries)).toEqual(["a", "b", "c", "d", "e"]);
    await settle(queue, deliveries, { kind: "ack" });
    await queue.enqueue("request", jobs);
    expect(ids(await take(queue))).toEqual(["f", "g"]);
  });
});

describe("a consumer that is there", () => {
  const sound = {
    durable_name: "eddy_normal",
    ack_policy: "explicit",
    ack_wait: 30e9,
    max_deliver: -1,
    max_ack_pending: -1,
  };
  async function make(name: string, config: Record<string, unknown>): Promise<void> {
    await nats.operator.api(`STREAM.CREATE.EDDY_JOBS_${name}`, jobsStream(name));
    const made = await nats.operator.api<{ error?: unknown }>(
      `CONSUMER.DURABLE.CREATE.EDDY_JOBS_${name}.eddy_normal`,
      {
        stream_name: `EDDY_JOBS_${name}`,
        config: { ...sound, filter_subject: `eddy.jobs.${name}`, ...config },
      },
    );
    expect(made.error).toBeUndefined();
  }

  const faults: [string, Record<string, unknown>, string[]][] = [
    ["pushes", { deliver_subject: "somewhere" }, ["deliver_subject"]],
    ["hands out headers only", { headers_only: true }, ["headers_only"]],
    ["has a backoff", { backoff: [1e9, 2e9], max_deliver: 5000 }, ["backoff", "ack_wait"]],
    ["parks jobs early", { max_deliver: 5 }, ["max_deliver of 5", "leastMaxDeliver"]],
    ["is of another subject", { filter_subject: "FRESH.high" }, ["filter_subject"]],
  ];
  test.each(faults)("refused: it %s", async (_, config, words) => {
    const name = nats.name();
    const { filter_subject } = config;
    await make(name, {
      ...config,
      ...(filter_subject === undefined ? {} : { filter_subject: `eddy.jobs.${name}.high` }),
    });
    const text = await refusal(name);
    expect(text).toStartWith(
      `Cannot open queue ${name}: the consumer eddy_normal of the stream EDDY_JOBS_${name} `,
    );
    for (const word of words) expect(text).toContain(word);
  });

  test("its ack_wait is raised by whoever claims under a longer lease, never lowered, and never by a producer", async () => {
    const name = nats.name();
    await make(name, { ack_wait: 1e9 });
    const ackWait = async () =>
      (await nats.operator.consumer(`EDDY_JOBS_${name}`, "eddy_normal")).config.ack_wait;
    const queue = nats.connect().queue(name, SETTINGS);
    await queue.open();
    await put(queue, "a");
    expect([queue.limits.leaseMs, await ackWait()]).toEqual([30_000, 1e9]);
    expect(ids(await take(queue))).toEqual(["a"]);
    expect([queue.limits.leaseMs, await ackWait()]).toEqual([30_000, 30e9]);
    const shorter = nats.connect().queue(name, { ...SETTINGS, leaseMs: 10_000 });
    await shorter.open();
    expect(await take(shorter)).toEqual([]);
    expect([shorter.limits.leaseMs, await ackWait()]).toEqual([30_000, 30e9]);
  });

  test("a worker's short lease stays, though a producer with another opens the queue, over the same connection too", async () => {
    const name = nats.name();
    const broker = nats.connect();
    const worker = broker.queue(name, { ...SETTINGS, leaseMs: 2_000, requestTimeoutMs: 400 });
    await worker.open();
    expect(await take(worker)).toEqual([]);
    for (const producer of [broker.queue(name, SETTINGS), nats.connect().queue(name, SETTINGS)]) {
      await producer.open();
      await put(producer, "a");
    }
    expect((await take(worker)).length).toBe(2);
    expect(worker.limits.leaseMs).toBe(2_000);
    expect((await nats.operator.consumer(`EDDY_JOBS_${name}`, "eddy_normal")).config.ack_wait).toBe(2e9);
  });

  test("its max_ack_pending is a limit: a prefetch above it is refused", async () => {
    const name = nats.name();
    await make(name, { max_ack_pending: 8 });
    const broker = nats.connect();
    const queue = broker.queue(name, SETTINGS);
    await queue.open();
    expect([queue.limits.maxBatch, queue.limits.maxInFlight]).toEqual([8, 8]);
    const worker = defineWorker({ queues: [named(name).handle(() => {}, { prefetch: 16 })] });
    await expect(startWorker(worker, { broker, platform: bunPlatform() })).rejects.toThrow(
      "prefetch is 16; the nats broker hands out 8 at most",
    );
  });

  test("its max_batch and max_expires are limits, too: no pull asks for more, nor waits longer", async () => {
    const name = nats.name();
    await make(name, { max_batch: 8, max_expires: 200e6 });
    const queue = nats.connect().queue(name, SETTINGS);
    await queue.open();
    expect([queue.limits.maxBatch, queue.limits.maxInFlight]).toEqual([8, Number.POSITIVE_INFINITY]);
    const waiting = queue.claim({ leaseId: leaseId(), max: 8, waitMs: 60_000 });
    expect((await waiting).deliveries).toEqual([]);
    await put(queue, ...idsOf("j", 20));
    expect(await take(queue, 8)).toHaveLength(8);
    // With some held, what is ready is pulled and acked.
    expect(await queue.clear?.(["ready"])).toBe(12);
  });

  test("a producer makes none: the lease is the first worker's", async () => {
    const name = nats.name();
    const producer = nats.connect().queue(name, SETTINGS);
    await producer.open();
    await put(producer, "a");
    const worker = nats.connect().queue(name, { ...SETTINGS, leaseMs: 2_000, requestTimeoutMs: 400 });
    await worker.open();
    expect(worker.limits.leaseMs).toBe(2_000);
    expect(ids(await take(worker))).toEqual(["a"]);
    expect((await nats.operator.consumer(`EDDY_JOBS_${name}`, "eddy_normal")).config.ack_wait).toBe(2e9);
  });
});

describe("a source", () => {
  async function make(
    name: string,
    consumer: Record<string, unknown> = {},
    stream: Record<string, unknown> = {},
  ): Promise<Partial<NatsBrokerOptions>> {
    await nats.operator.api(`STREAM.CREATE.${name}`, {
      name,
      subjects: [`orders.${name}.>`],
      retention: "workqueue",
      discard: "new",
      ...stream,
    });
    const made = await nats.operator.api<{ error?: unknown }>(`CONSUMER.DURABLE.CREATE.${name}.worker`, {
      stream_name: name,
      config: {
        durable_name: "worker",
        ack_policy: "explicit",
        ack_wait: 30e9,
        max_deliver: -1,
        ...consumer,
      },
    });
    expect(made.error).toBeUndefined();
    return { sources: { [name]: { stream: name, consumer: "worker" } } };
  }

  test("refused: its stream or its consumer is missing", async () => {
    const name = nats.name();
    const sources = { [name]: { stream: name, consumer: "worker" } };
    expect(await refusal(name, { sources })).toContain(`the stream ${name} is not there`);
    await nats.operator.api(`STREAM.CREATE.${name}`, {
      name,
      subjects: [`orders.${name}.>`],
      discard: "new",
    });
    expect(await refusal(name, { sources })).toContain(
      `the consumer worker of the stream ${name} is not there`,
    );
  });

  const faults: [string, Record<string, unknown>, Record<string, unknown>, string[]][] = [
    ["acks all before", { ack_policy: "all" }, { retention: "limits" }, ['ack_policy "all"', '"explicit"']],
    ["acks none", { ack_policy: "none" }, { retention: "limits" }, ['ack_policy "none"', '"explicit"']],
    ["leaves renewals no time", { ack_wait: 9e9 }, {}, ["ack_wait of 9000 ms", "requestTimeoutMs is 5000"]],
    ["parks jobs early", { max_deliver: 20 }, {}, ["max_deliver of 20"]],
    ["drops jobs", {}, { max_age: 3600e9 }, ["max_age"]],
  ];
  test.each(faults)("refused: it %s", async (_, consumer, stream, words) => {
    const name = nats.name();
    const options = await make(name, consumer, stream);
    const text = await refusal(name, options);
    expect(text).toStartWith(`Cannot open queue ${name}: the `);
    for (const word of words) expect(text).toContain(word);
  });

  test("its lease is the consumer's ack_wait where that is shorter", async () => {
    const name = nats.name();
    const queue = nats.connect(await make(name, { ack_wait: 20e9 })).queue(name, SETTINGS);
    await queue.open();
    expect(queue.limits.leaseMs).toBe(20_000);
  });

  test("feeds the queue beside its own jobs, and what is retried or given back comes from there", async () => {
    const name = nats.name();
    const queue = nats.connect(await make(name)).queue(name, SETTINGS);
    await queue.open();
    await nats.operator.publish(`orders.${name}.new`, "one");
    await nats.operator.publish(`orders.${name}.new`, "two");
    await nats.operator.publish(`orders.${name}.new`, "three");
    await put(queue, job("own", { priority: "low" }));
    const deliveries = await take(queue);
    expect(deliveries.map((one) => one.body)).toEqual(["one", "two", "three", "own"]);
    expect(await queue.sizes?.()).toMatchObject({ ready: 0, held: 4 });
    const [one, two, three, own] = deliveries;
    if (!one || !two || !three || !own) throw new Error("four came");
    await queue.settle([
      { delivery: one, verdict: { kind: "retry", delayMs: 0 } },
      { delivery: two, verdict: { kind: "release" } },
      { delivery: three, verdict: { kind: "dead", error: "no" } },
      { delivery: own, verdict: { kind: "ack" } },
    ]);
    const state = await nats.operator.consumer(name, "worker");
    expect([state.num_pending, state.num_ack_pending]).toEqual([0, 0]);
    const again = await take(queue);
    expect(again.map((each) => [each.body, each.attempt])).toEqual([
      ["two", 1],
      ["one", 2],
    ]);
    expect((await queue.peek?.("dead", 5))?.map((each) => [each.body, each.error])).toEqual([
      ["three", "no"],
    ]);
    await settle(queue, again, { kind: "ack" });
    expect(await queue.redrive?.({ limit: 5 })).toBe(1);
    expect((await take(queue)).map((each) => each.body)).toEqual(["three"]);
  });

  test("jobs that ran out of the server's max_deliver become dead letters: those told of, and those from before", async () => {
    const name = nats.name();
    const options = {
      ...(await make(name, { max_deliver: 2, ack_wait: 300e6 })),
      leastMaxDeliver: 2,
    };
    const settings = { ...SETTINGS, leaseMs: 300, requestTimeoutMs: 60 };
    /** Hands it out and never acks it, as often as the server does. */
    const useUp = async () => {
      for (let n = 0; n < 3; n++) {
        const inbox = nats.operator.nc.subscribe("used.up", { max: 1 });
        nats.operator.nc.publish(
          `$JS.API.CONSUMER.MSG.NEXT.${name}.worker`,
          '{"batch":1,"expires":50000000}',
          {
            reply: "used.up",
          },
        );
        for await (const _ of inbox);
        await Bun.sleep(350);
      }
    };
    await nats.operator.publish(`orders.${name}.new`, "before");
    await useUp();
    const queue = nats.connect(options).queue(name, settings);
    await queue.open();
    expect((await queue.peek?.("dead", 5))?.map((each) => each.body)).toEqual(["before"]);
    await nats.operator.publish(`orders.${name}.new`, "after");
    await useUp();
    expect(await take(queue)).toEqual([]);
    const dead = await queue.peek?.("dead", 5);
    expect(dead?.map((each) => [each.body, each.attempts])).toEqual([
      ["before", 2],
      ["after", 2],
    ]);
    expect(dead?.[1]?.error).toContain("max_deliver");
    const { state } = await nats.operator.api<{ state: { messages: number } }>(`STREAM.INFO.${name}`);
    expect(state.messages).toBe(0);
    expect(await queue.redrive?.({ limit: 5 })).toBe(2);
    expect((await take(queue)).map((each) => [each.body, each.attempt])).toEqual([
      ["before", 1],
      ["after", 1],
    ]);
  });
});

describe("a login", () => {
  const SECRET = "hush-hush";
  const user = nkeys.createUser();
  const seed = new TextDecoder().decode(user.getSeed());
  const ways: [string, string, Partial<NatsBrokerOptions>, Partial<NatsBrokerOptions>][] = [
    ["a token", `authorization { token: "${SECRET}" }`, { token: SECRET }, { token: "wrong-one" }],
    [
      "a user and a password",
      `authorization { user: "ada", password: "${SECRET}" }`,
      { user: "ada", password: SECRET },
      { user: "ada", password: "wrong-one" },
    ],
    [
      "an nkey",
      `authorization { users: [ { nkey: "${user.getPublicKey()}" } ] }`,
      { nkeySeed: seed },
      { nkeySeed: new TextDecoder().decode(nkeys.createUser().getSeed()) },
    ],
  ];
  test.each(ways)("with %s, or not at all", async (_, config, right, wrong) => {
    const own = await startNats({ config });
    try {
      const queue = nats.connect({ url: own.url, ...right }).queue("q", SETTINGS);
      await queue.open();
      await put(queue, "a");
      expect(ids(await take(queue))).toEqual(["a"]);
      for (const options of [wrong, {}]) {
        const text = await refusal("q", { url: own.url, ...options });
        expect(text).toContain("refuses the credentials");
        for (const secret of [SECRET, "wrong-one", seed]) expect(text).not.toContain(secret);
      }
    } finally {
      await own.stop();
    }
  });

  test("from a command's environment, and from a credentials file", async () => {
    const folder = await mkdtemp(join(tmpdir(), "eddy-creds-"));
    const file = join(folder, "user.creds");
    // The server checks the seed's signature and, without an operator, not the JWT.
    const jwt = "eyJ0eXAiOiJKV1QifQ.e30.c2ln";
    await writeFile(
      file,
      `-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`,
    );
    const own = await startNats({
      config: `authorization { users: [ { nkey: "${user.getPublicKey()}" } ] }`,
    });
    const shell = {
      platform: bunPlatform(),
      sqlite: () => Promise.reject(new Error("not asked for")),
    };
    try {
      const spec = chooseBroker(own.url, { EDDY_NATS_CREDS: file });
      const broker = await connectBroker(spec, shell, () => {});
      await broker.queue("q", SETTINGS).open();
      await broker.close();
      const missing = chooseBroker(own.url, { EDDY_NATS_CREDS: join(folder, "none") });
      await expect(connectBroker(missing, shell, () => {})).rejects.toThrow("EDDY_NATS_CREDS names a file");
      await writeFile(file, "no.such.thing");
      await expect(connectBroker(spec, shell, () => {})).rejects.toThrow(
        "Cannot use the broker: EDDY_NATS_CREDS names no credentials file (no JWT and seed in it); give the path of a credentials file",
      );
    } finally {
      await own.stop();
      await rm(folder, { recursive: true });
    }
  });

  test("a missing permission is named", async () => {
    const own = await startNats({
      config: `authorization { users: [ { user: "a", password: "b", permissions: { publish: { deny: ["$JS.API.STREAM.CREATE.>"] } } } ] }`,
    });
    try {
      const text = await refusal("q", { url: own.url, user: "a", password: "b" });
      expect(text).toContain("does not let this user publish $JS.API.STREAM.CREATE.EDDY_");
    } finally {
      await own.stop();
    }
  });

  test("a server without JetStream is named", async () => {
    const own = await startNats({ jetStream: false });
    try {
      expect(await refusal("q", { url: own.url })).toContain("has no JetStream for this account");
    } finally {
      await own.stop();
    }
  });

  test("nobody there is a passing error, without the address's secrets", async () => {
    const url = `ws://127.0.0.1:9/${SECRET}?token=${SECRET}`;
    const text = await refusal("q", { url, token: SECRET }, { requestTimeoutMs: 300 });
    expect(text).toStartWith("BrokerError: Cannot open: there is no connection to ws://127.0.0.1:9");
    expect(text).not.toContain(SECRET);
  });
});

test("options that cannot be used are refused when the broker is made", () => {
  const faults: [Record<string, unknown>, string][] = [
    [{ url: "http://x" }, "url is no ws:// or wss:// address"],
    [{ url: [] }, "url is an empty array"],
    [{ url: "ws://ada:hush@x" }, "url has credentials in it"],
    [{ url: "ws://x", user: "ada" }, "user and password are not both given"],
    [{ url: "ws://x", token: "t", nkeySeed: "s" }, "more than one of token"],
    [{ url: "ws://x", token: "" }, "token is empty"],
    [{ url: "ws://x", prefix: "a.b" }, "prefix is faulty"],
    [{ url: "ws://x", storage: "disk" }, "storage is neither"],
    [{ url: "ws://x", replicas: 0 }, "replicas is 0"],
    [{ url: "ws://x", pingEveryMs: 1.5 }, "pingEveryMs is 1.5"],
    [{ url: "ws://x", sources: { q: { stream: "a.b", consumer: "c" } } }, "sources.q names no stream"],
  ];
  for (const [options, words] of faults) {
    expect(() => new NatsBroker(options as unknown as NatsBrokerOptions)).toThrow(words);
  }
});
