import { describe, expect, test } from "bun:test";
import {
  leaseDeadline,
  leaseMarginMs,
  renewalDue,
  renewalRetryAt,
  renewalWorthwhile,
} from "../../src/lease.ts";
import { abortOf } from "../support/handling.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

describe("when a lease is renewed and when it counts as lost", () => {
  test("a third of it after it was sent for; lost before the broker loses it", () => {
    for (const leaseMs of [100, 1_000, 30_000, 600_000]) {
      expect(renewalDue(500, leaseMs)).toBeCloseTo(500 + leaseMs / 3, 6);
      expect(leaseDeadline(500, leaseMs)).toBeLessThan(500 + leaseMs);
      expect(leaseDeadline(500, leaseMs)).toBe(500 + leaseMs - leaseMarginMs(leaseMs));
      expect(renewalWorthwhile(500 + leaseMs / 6 - 1, 500, leaseMs)).toBe(false);
      expect(renewalWorthwhile(500 + leaseMs / 6 + 1, 500, leaseMs)).toBe(true);
    }
  });

  test("after a failure again in a second, or a tenth of a short lease, and not when that is too late", () => {
    expect(renewalRetryAt(10_000, 30_000, 29_000)).toBe(11_000);
    expect(renewalRetryAt(400, 1_000, 950)).toBe(500);
    expect(renewalRetryAt(900, 1_000, 950)).toBeUndefined();
    expect(renewalRetryAt(28_000, 30_000, 29_000)).toBeUndefined();
  });
});

describe("a lease that is renewed", () => {
  test("holds for as long as its jobs run", async () => {
    const world = new World();
    await world.add(1);
    const worker = await world.start(world.takes(10_000), { leaseMs: 3_000 });
    await world.untilEmpty();
    expect(world.told("started").length).toBe(1);
    expect(world.told("settled").map((one) => one.verdict)).toEqual(["ack"]);
    const renewals = world.broker.of("renew");
    expect(renewals.map((one) => Math.round(one.at / 1_000))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    await world.platform.run(worker.stop());
  });

  test("covers handlers that outlast it: 8 jobs of 5 s under a lease of 1 s run once each", async () => {
    const world = new World({ roundTripMs: 5 });
    await world.add(8);
    const ran: string[] = [];
    const worker = await world.start(world.takes(5_000, ran), { leaseMs: 1_000, prefetch: 4 });
    await world.untilEmpty();
    await world.platform.run(worker.stop());
    expect(ran.length).toBe(8);
    expect(worker.stats()[0]).toMatchObject({ acked: 8, lost: 0 });
    expect(worker.stats()[0]?.renewals).toBeGreaterThan(60);
  });

  test("is anchored at the moment its claim was sent, not when the answer came", async () => {
    // The claim takes 200 ms there and 400 ms back; the lease of 1,000 ms runs from its arrival.
    const world = new World();
    await world.add(1);
    world.broker.fault = (asked) => {
      if (asked.claim !== undefined) return { delayMs: 10, replyMs: 150 };
      return asked.verb === "renew" ? "hangs" : undefined;
    };
    let lostAt = 0;
    const worker = await world.start(
      async (job) => {
        const reason = await abortOf(job);
        lostAt = world.platform.now();
        throw reason;
      },
      { leaseMs: 1_000 },
    );
    await world.until(() => lostAt > 0);
    const claim = world.broker.claims.find((one) => one.answeredAt !== undefined);
    expect(lostAt - (claim?.at ?? 0)).toBe(950);
    world.broker.fault = () => undefined;
    await world.platform.run(worker.stop());
  });

  test("so is each renewal", async () => {
    const world = new World();
    await world.add(1);
    let renewals = 0;
    world.broker.fault = (asked) => {
      if (asked.verb !== "renew") return undefined;
      renewals += 1;
      return renewals === 1 ? { delayMs: 5, replyMs: 150 } : "hangs";
    };
    let lostAt = 0;
    const worker = await world.start(
      async (job) => {
        const reason = await abortOf(job);
        lostAt = world.platform.now();
        throw reason;
      },
      { leaseMs: 1_000 },
    );
    await world.until(() => lostAt > 0);
    expect(lostAt - (world.broker.of("renew")[0]?.at ?? 0)).toBe(950);
    world.broker.fault = () => undefined;
    await world.platform.run(worker.stop());
  });

  test("rides on exchanges that go out anyway, and then needs no request of its own", async () => {
    const world = new World();
    await world.add(400);
    let nth = 0;
    const worker = await world.start(
      async () => {
        nth += 1;
        await world.platform.sleep(nth === 1 ? 20_000 : 50);
      },
      { concurrency: 2, prefetch: 4, leaseMs: 3_000 },
    );
    await world.until(() => world.told("finished").some((one) => one.ranMs > 10_000));
    expect(world.told("lost").length).toBe(0);
    expect(world.broker.count("renew")).toBe(0);
    expect(worker.stats()[0]?.renewals).toBeGreaterThan(6);
    await world.untilEmpty();
    await world.platform.run(worker.stop());
  });

  test("does not ride on the very request that settles the last of it", async () => {
    const world = new World();
    await world.add(8);
    const worker = await world.start(world.takes(800), { prefetch: 1, leaseMs: 3_000 });
    await world.untilEmpty();
    await world.platform.run(worker.stop());
    // A lease of one job that is old enough to be renewed when its verdict leaves.
    expect(world.broker.log.flatMap((asked) => asked.renew)).toEqual([]);
  });

  test("one timer serves all: with many leases held, few are set", async () => {
    const world = new World();
    await world.add(64);
    const worker = await world.start(world.takes(2_000), { concurrency: 64, prefetch: 1 });
    await world.until(() => world.told("started").length === 64);
    await world.platform.pass(500);
    // 64 sleeping handlers; beside them the keeper's, the loop's and the next look.
    expect(world.platform.timers).toBeLessThanOrEqual(64 + 3);
    await world.untilEmpty();
    await world.platform.run(worker.stop());
  });

  test("several leases that are due together share a request", async () => {
    const world = new World({ lacks: ["exchange"] });
    const worker = await world.start(world.takes(5_000), {
      concurrency: 4,
      prefetch: 1,
      leaseMs: 3_000,
      claimAhead: false,
    });
    for (let i = 0; i < 4; i += 1) {
      await world.add(1);
      await world.platform.pass(0);
    }
    expect(new Set(world.told("started").map((one) => one.leaseId)).size).toBe(4);
    await world.until(() => world.broker.count("renew") > 0);
    expect(world.broker.of("renew")[0]?.renew.length).toBe(4);
    await world.untilEmpty();
    await world.platform.run(worker.stop());
  });
});

describe("a failed renewal", () => {
  test("is tried again after a second, and the job goes on", async () => {
    const world = new World();
    await world.add(1);
    world.broker.fault = (asked) => (asked.verb === "renew" && asked.nth < 3 ? "lost" : undefined);
    const worker = await world.start(world.takes(20_000), { leaseMs: 15_000 });
    await world.untilEmpty();
    expect(world.broker.of("renew").map((one) => one.at)).toEqual([
      5_000, 6_000, 7_000, 8_000, 13_000, 18_000,
    ]);
    expect(world.told("lost").length).toBe(0);
    expect(world.told("brokerError").map((one) => [one.verb, one.retryInMs])).toEqual(
      Array(3).fill(["renew", undefined]),
    );
    await world.platform.run(worker.stop());
  });

  test("that only lost its answer is one that landed", async () => {
    const world = new World();
    await world.add(1);
    world.broker.fault = (asked) => (asked.verb === "renew" && asked.nth % 2 === 0 ? "replyLost" : undefined);
    const worker = await world.start(world.takes(20_000), { leaseMs: 3_000 });
    await world.untilEmpty();
    expect(world.told("started").length).toBe(1);
    await world.platform.run(worker.stop());
  });

  test("an adapter that throws instead of rejecting is one that fails", async () => {
    const world = new World();
    await world.add(1);
    world.broker.fault = (asked) => (asked.verb === "renew" && asked.nth === 0 ? "throws" : undefined);
    const worker = await world.start(world.takes(5_000), { leaseMs: 3_000 });
    await world.untilEmpty();
    expect(world.told("started").length).toBe(1);
    expect(world.told("brokerError").length).toBe(1);
    await world.platform.run(worker.stop());
  });
});

describe("renewals and the rest", () => {
  test("go on through a stop, until the last handler has ended", async () => {
    const world = new World();
    await world.add(1);
    const worker = await world.start(world.takes(9_000), { leaseMs: 1_500 }, { graceMs: 20_000 });
    await world.platform.pass(100);
    await world.platform.run(worker.stop());
    expect(worker.stats()[0]).toMatchObject({ acked: 1, lost: 0 });
    expect(world.broker.of("renew").at(-1)?.at).toBeGreaterThan(8_000);
  });

  test("one under way is awaited before its lease is settled", async () => {
    for (const lacks of [[], ["exchange"]] as const) {
      const world = new World({ lacks });
      await world.add(1);
      world.broker.fault = (asked) => (asked.verb === "renew" ? { delayMs: 50, replyMs: 50 } : undefined);
      const worker = await world.start(world.takes(1_020), { leaseMs: 3_000 });
      await world.untilEmpty();
      const renewal = world.broker.of("renew")[0];
      const settle = world.broker.log.find((asked) => asked.settle.length > 0);
      expect(renewal?.at).toBe(1_000);
      expect(settle?.at).toBe(renewal?.answeredAt as number);
      expect(settle?.at).toBe(1_100);
      await world.platform.run(worker.stop());
    }
  });

  test("one that finds the lease gone keeps the verdict from being sent", async () => {
    const world = new World({ lacks: ["exchange"] });
    await world.add(1);
    world.broker.fault = (asked) => (asked.verb === "renew" ? { delayMs: 50, replyMs: 50 } : undefined);
    const worker = await world.start(world.takes(1_020), { leaseMs: 3_000, safetyPollMs: 1_000_000 });
    await world.platform.pass(500);
    await world.engineQueue().abandon?.([world.told("claimed")[0]?.leaseId as string]);
    await world.platform.pass(1_000);
    expect(world.broker.log.flatMap((asked) => asked.settle)).toEqual([]);
    expect(world.told("lost").length).toBe(1);
    await world.platform.run(worker.stop());
  });

  test("are not sent where leases are not renewed; the job is lost at its end", async () => {
    const world = new World();
    await world.add(1);
    let reason: unknown;
    const worker = await world.start(
      async (job) => {
        reason = await abortOf(job);
      },
      { leaseMs: 1_000, renew: false },
    );
    await world.until(() => reason !== undefined);
    expect(world.platform.now()).toBe(950);
    expect(world.broker.count("renew")).toBe(0);
    await world.platform.run(worker.stop());
  });

  test("an engine's wait never uses up the lease of what it brings", async () => {
    for (const renew of [true, false]) {
      const world = new World({ waits: true });
      const ran: string[] = [];
      const worker = await world.start(world.takes(10, ran), { leaseMs: 3_000, renew });
      // Each job comes at another moment of a wait.
      for (let i = 0; i < 16; i += 1) {
        await world.platform.pass([173, 1_501, 2_951, 7_003][i % 4] as number);
        await world.add(1);
      }
      await world.until(() => ran.length === 16);
      expect(world.told("lost").length).toBe(0);
      await world.platform.run(worker.stop());
    }
  });
});
