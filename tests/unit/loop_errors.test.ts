import { describe, expect, test } from "bun:test";
import { BrokerError, BrokerRefusedError } from "../../src/errors.ts";
import { queue } from "../../src/queue.ts";
import { startWorker } from "../../src/start.ts";
import { defineWorker } from "../../src/worker.ts";
import { type Asked, type Fault, type FaultyBroker, LINK_FAULT } from "../support/faulty_broker.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

describe("a broker error of any verb", () => {
  const verbs = [
    ["exchange", []],
    ["claim", ["exchange"]],
    ["settle", ["exchange"]],
    ["renew", []],
    ["watch", []],
  ] as const;
  for (const [verb, lacks] of verbs) {
    for (const fault of ["lost", "replyLost", "hangs", "hangsAfter", "throws", "repeated"] as const) {
      test(`${verb} ${fault}: the loop goes on, each job is run once`, async () => {
        const world = new World({ lacks });
        await world.add(30);
        let faults = 0;
        world.broker.fault = (asked) => {
          if (asked.verb !== verb || faults >= 4) return undefined;
          faults += 1;
          return fault;
        };
        const ran: string[] = [];
        const worker = await world.start(world.takes(verb === "renew" ? 1_500 : 100, ran), {
          leaseMs: 3_000,
          prefetch: 8,
          requestTimeoutMs: 300,
        });
        await world.add(30);
        await world.untilEmpty();
        await world.platform.run(worker.stop());
        expect(faults).toBeGreaterThan(0);
        expect(ran.length).toBe(60);
        expect(worker.stats()[0]).toMatchObject({ acked: 60, lost: 0, held: 0 });
        if (fault !== "repeated") expect(world.told("brokerError").length).toBe(faults);
      });
    }
  }

  test("answers that leave something out are no answers: what was sent is sent again", async () => {
    const world = new World();
    await world.add(20);
    const inner = world.broker.queue.bind(world.broker);
    let nth = 0;
    world.broker.queue = (name, settings) => {
      const one = inner(name, settings);
      const exchange = one.exchange?.bind(one);
      if (exchange !== undefined) {
        one.exchange = async (request) => {
          const reply = await exchange(request);
          nth += 1;
          if (nth === 2) return { ...reply, settled: reply.settled.slice(1) };
          if (nth === 4) return { settled: reply.settled, renewed: reply.renewed };
          return nth === 6 ? (undefined as never) : reply;
        };
      }
      return one;
    };
    const worker = await world.start(world.takes(10), { prefetch: 4 });
    await world.untilEmpty();
    await world.platform.run(worker.stop());
    expect(world.told("brokerError").length).toBe(3);
    expect(world.told("started").length).toBe(20);
    expect(worker.stats()[0]).toMatchObject({ acked: 20, lost: 0, held: 0 });
  });

  test("pauses from 100 ms, doubling, with full jitter, to 10 s", async () => {
    const world = new World();
    world.broker.fault = (asked) => (asked.claim === undefined ? undefined : "lost");
    const worker = await world.start(() => {});
    await world.until(() => world.told("brokerError").length >= 60, 3_600_000);
    const pauses = world.told("brokerError").map((one) => one.retryInMs ?? Number.NaN);
    for (const [index, pause] of pauses.entries()) {
      expect(pause).toBeGreaterThanOrEqual(0);
      expect(pause).toBeLessThan(Math.min(10_000, 100 * 2 ** index));
    }
    const late = pauses.slice(10);
    // Evenly spread over ten seconds.
    expect(Math.max(...late)).toBeGreaterThan(8_000);
    expect(Math.min(...late)).toBeLessThan(2_000);
    const mean = late.reduce((sum, pause) => sum + pause, 0) / late.length;
    expect(mean).toBeGreaterThan(3_500);
    expect(mean).toBeLessThan(6_500);
    // And each was kept.
    const claims = world.broker.claims;
    for (let i = 1; i < claims.length; i += 1) {
      expect((claims[i] as Asked).at - (claims[i - 1] as Asked).at).toBeCloseTo(pauses[i - 1] as number, 6);
    }
    await world.platform.run(worker.stop());
  });

  test("after a success the pauses start small again", async () => {
    const world = new World();
    let away = true;
    world.broker.fault = (asked) => (away && asked.claim !== undefined ? "lost" : undefined);
    const worker = await world.start(() => {});
    await world.until(() => world.told("brokerError").length >= 12);
    away = false;
    await world.until(() => world.told("claimed").length > 0);
    const { length } = world.told("brokerError");
    away = true;
    await world.add(1);
    await world.until(() => world.told("brokerError").length > length);
    expect(world.told("brokerError").at(-1)?.retryInMs).toBeLessThan(100);
    away = false;
    await world.platform.run(worker.stop());
  });

  test("two workers with the same failure do not try again at the same times", async () => {
    const world = new World({ lacks: ["wake"] });
    const other = world.broker.another();
    const fault = (asked: Asked): Fault | undefined => (asked.claim === undefined ? undefined : "lost");
    world.broker.fault = fault;
    other.fault = fault;
    const definition = defineWorker({ queues: [queue("work").handle(() => {})] });
    const workers = [await world.startDefinition(definition), await world.startDefinition(definition, other)];
    await world.platform.pass(120_000);
    const times = (broker: FaultyBroker) => broker.claims.map((claim) => Math.round(claim.at));
    const mine = new Set(times(world.broker).slice(2));
    const shared = times(other).filter((at) => mine.has(at));
    expect(mine.size).toBeGreaterThan(10);
    expect(shared.length).toBeLessThanOrEqual(1);
    await world.platform.run(Promise.all(workers.map((worker) => worker.stop())));
  });

  test("a broker that never answers is given up on after requestTimeoutMs", async () => {
    const world = new World();
    world.broker.fault = (asked) => (asked.claim === undefined ? undefined : "hangs");
    const worker = await world.start(() => {}, { requestTimeoutMs: 700 });
    await world.until(() => world.told("brokerError").length === 1);
    const sent = world.broker.claims[0]?.at ?? Number.NaN;
    expect(world.platform.now() - sent).toBeLessThanOrEqual(702);
    const { error } = world.told("brokerError")[0] ?? {};
    expect(error).toBeInstanceOf(BrokerError);
    expect(error?.message).toContain("700 ms");
    world.broker.fault = () => undefined;
    await world.platform.run(worker.stop());
  });

  test("a claim is sent again under its own lease id, so a lost reply costs nothing", async () => {
    const world = new World();
    const ids = await world.add(6);
    let claims = 0;
    world.broker.fault = (asked) => {
      if (asked.claim === undefined) return undefined;
      claims += 1;
      return claims <= 3 ? "replyLost" : undefined;
    };
    const ran: string[] = [];
    const worker = await world.start(world.takes(1, ran), { prefetch: 6 });
    await world.untilEmpty();
    expect(new Set(world.broker.claims.slice(0, 4).map((one) => one.claim?.leaseId)).size).toBe(1);
    expect(ran).toEqual(ids);
    expect(world.told("started").every((one) => one.attempt === 1)).toBe(true);
    await world.platform.run(worker.stop());
  });
});

describe("only the handler's failure rejects a job", () => {
  test("a failed ack is sent again while the lease holds, and never turns into a retry", async () => {
    for (const lacks of [[], ["exchange"]] as const) {
      const world = new World({ lacks });
      await world.add(3);
      let away = false;
      world.broker.fault = (asked) => (away && asked.verb !== "renew" ? "lost" : undefined);
      const worker = await world.start(world.takes(100), { prefetch: 3 });
      await world.platform.pass(10);
      away = true;
      await world.platform.pass(15_000);
      away = false;
      await world.untilEmpty();
      await world.platform.run(worker.stop());
      expect(world.told("started").length).toBe(3);
      expect(worker.stats()[0]).toMatchObject({ acked: 3, retried: 0, dead: 0, lost: 0 });
      const kinds = world.broker.log.flatMap((asked) => asked.settle.map((one) => one.verdict.kind));
      expect(new Set(kinds)).toEqual(new Set(["ack"]));
    }
  });

  test("when the lease ends first it counts as lost, and the job comes again as a suspect", async () => {
    const world = new World();
    await world.add(1);
    let away = false;
    world.broker.fault = () => (away ? "lost" : undefined);
    const worker = await world.start(world.takes(100), { leaseMs: 2_000 });
    await world.platform.pass(10);
    away = true;
    await world.platform.pass(5_000);
    away = false;
    await world.untilEmpty();
    expect(world.told("started").map((one) => one.attempt)).toEqual([1, 2]);
    expect(world.told("finished").every((one) => one.verdict === "ack")).toBe(true);
    await world.platform.run(worker.stop());
    expect(worker.stats()[0]).toMatchObject({ acked: 1, lost: 1, retried: 0, dead: 0 });
  });

  test("one verdict that is lost does not touch the others", async () => {
    const world = new World();
    const ids = await world.add(4);
    const worker = await world.start(world.takes(100), { concurrency: 4, prefetch: 1, claimAhead: false });
    await world.platform.pass(10);
    // Each came under the one lease of a claim for four; a second worker's view of one of them is settled first.
    const lease = world.told("claimed")[0]?.leaseId as string;
    await world.engineQueue().settle([
      {
        delivery: {
          id: ids[1] as string,
          leaseId: lease,
          token: "1",
          attempt: 1,
          suspect: false,
          enqueuedAt: 0,
          headers: {},
          body: "",
          priority: "normal",
        },
        verdict: { kind: "release" },
      },
    ]);
    await world.untilEmpty();
    await world.platform.run(worker.stop());
    // "done" for what was settled before; all four were acked.
    expect(worker.stats()[0]).toMatchObject({ lost: 0 });
  });
});

describe("a broker that refuses", () => {
  for (const verb of ["exchange", "claim", "settle", "renew"] as const) {
    test(`a ${verb}: the worker stops, and its done rejects with the reason`, async () => {
      const world = new World({ lacks: verb === "claim" || verb === "settle" ? ["exchange"] : [] });
      await world.add(50);
      world.broker.fault = (asked) =>
        asked.verb === verb && asked.nth >= (verb === "renew" ? 0 : 2) ? "refused" : undefined;
      const worker = await world.start(
        world.takes(verb === "renew" ? 1_500 : 400),
        { prefetch: 4, leaseMs: 3_000 },
        { graceMs: 100 },
      );
      let reason: unknown;
      await world.platform.run(worker.done).catch((error: unknown) => {
        reason = error;
      });
      expect(reason).toBeInstanceOf(BrokerRefusedError);
      expect(world.told("refused").length).toBe(1);
      expect(world.told("stopped").length).toBe(1);
      expect(world.told("stopping")[0]?.reason).toContain("keys may be evicted");
      const requests = world.broker.count();
      await world.platform.pass(60_000);
      expect(world.broker.count()).toBe(requests);
      expect(world.platform.timers).toBe(0);
    });
  }

  test("at opening: the worker does not start", async () => {
    const world = new World();
    world.broker.fault = (asked) => (asked.verb === "open" ? "refused" : undefined);
    await expect(world.start(() => {})).rejects.toBeInstanceOf(BrokerRefusedError);
  });

  test("its other queues stop too, and settle what they have", async () => {
    const world = new World();
    await world.add(4, {}, "bad");
    await world.add(4, {}, "good");
    world.broker.fault = (asked) =>
      asked.queue === "bad" && asked.verb === "exchange" && asked.nth > 3 ? "refused" : undefined;
    const worker = await world.startDefinition(
      defineWorker({
        queues: [queue("bad").handle(world.takes(30)), queue("good").handle(world.takes(100))],
        graceMs: 1_000,
      }),
    );
    await expect(world.platform.run(worker.done)).rejects.toBeInstanceOf(BrokerRefusedError);
    expect(await world.sizes("good")).toMatchObject({ held: 0 });
  });
});

describe("starting", () => {
  test("a broker that cannot be reached is told of by startWorker", async () => {
    for (const fault of ["lost", "hangs", "throws"] as const) {
      const world = new World();
      world.broker.fault = () => fault;
      await expect(world.start(() => {})).rejects.toBeInstanceOf(BrokerError);
    }
  });

  test("a watch that never answers does not keep a worker from starting, and late ones are closed", async () => {
    const world = new World();
    await world.add(1);
    world.broker.fault = (asked) =>
      asked.verb === "watch" && asked.nth === 0 ? { delayMs: 9_000, replyMs: 0 } : undefined;
    const worker = await world.start(() => {}, { requestTimeoutMs: 500 });
    expect(world.platform.now()).toBeLessThanOrEqual(500);
    await world.platform.pass(20_000);
    expect(world.broker.breakWatches.size).toBe(1);
    await world.platform.run(worker.stop());
    expect(world.broker.breakWatches.size).toBe(0);
  });

  test("an unlooked-at done does not end the process", async () => {
    const world = new World();
    world.broker.fault = (asked) => (asked.claim === undefined ? undefined : "refused");
    await world.start(() => {});
    await world.platform.pass(30_000);
    expect(world.told("stopped").length).toBe(1);
  });

  test("listeners that throw cost nothing", async () => {
    const world = new World();
    await world.add(5);
    const worker = await world.platform.run(
      startWorker(defineWorker({ queues: [queue("work").handle(() => {})] }), {
        broker: world.broker,
        platform: world.platform,
        on: () => {
          throw new Error("a listener's own");
        },
      }),
    );
    await world.untilEmpty();
    await world.platform.run(worker.stop());
    expect(worker.stats()[0]?.acked).toBe(5);
  });

  test("nor do listeners, logs and backoffs whose promises reject: noStrayRejections sees none", async () => {
    const world = new World();
    await world.add(5);
    let heard = 0;
    const rejects = async () => {
      heard += 1;
      throw new Error("a listener's own, later");
    };
    const worker = await world.platform.run(
      startWorker(
        defineWorker({
          queues: [
            queue("work").handle(
              (job) => {
                job.log.info("here");
                if (job.attempt === 1) throw new Error("again");
              },
              { backoff: rejects as never },
            ),
          ],
        }),
        { broker: world.broker, platform: world.platform, on: rejects, log: rejects },
      ),
    );
    await world.untilEmpty();
    await world.platform.run(worker.stop());
    // As long as an unhandled rejection takes to be told of.
    await new Promise((resolve) => setTimeout(resolve));
    expect(worker.stats()[0]).toMatchObject({ acked: 5, retried: 5 });
    expect(heard).toBeGreaterThan(20);
  });

  test("events carry no body", async () => {
    const world = new World();
    await world.add(3, { body: '"the secret of the job"' });
    world.broker.fault = (asked) => (asked.nth === 1 ? "lost" : undefined);
    const worker = await world.start(world.takes(1));
    await world.untilEmpty();
    await world.platform.run(worker.stop());
    const told = JSON.stringify(
      world.events.map((event) => ({ ...event, text: "error" in event ? String(event.error) : "" })),
    );
    expect(told).not.toContain("secret");
    expect(told).toContain(LINK_FAULT);
  });
});
