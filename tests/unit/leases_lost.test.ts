import { describe, expect, test } from "bun:test";
import { LeaseLostError } from "../../src/errors.ts";
import type { Job } from "../../src/job.ts";
import { queue } from "../../src/queue.ts";
import { defineWorker } from "../../src/worker.ts";
import { abortOf } from "../support/handling.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

/** How many verdicts were sent under a lease. */
function settledUnder(world: World, leaseId: string | undefined): number {
  return world.broker.log.flatMap((asked) => asked.settle).filter((one) => one.delivery.leaseId === leaseId)
    .length;
}

describe("a lease that is lost", () => {
  /** A worker whose renewals fail: one job runs and waits for its signal, three wait behind it. */
  async function losing(fault: "lost" | "hangs") {
    const world = new World();
    await world.add(4);
    world.broker.fault = (asked) => (asked.verb === "renew" || asked.renew.length > 0 ? fault : undefined);
    const aborted: { at: number; reason: unknown; id: string }[] = [];
    const seen: Job<unknown>[] = [];
    const worker = await world.start(
      async (job) => {
        seen.push(job);
        const reason = await abortOf(job);
        aborted.push({ at: world.platform.now(), reason, id: job.id });
      },
      { leaseMs: 2_000, prefetch: 4, safetyPollMs: 1_000_000 },
    );
    return { world, worker, aborted, seen };
  }

  for (const fault of ["lost", "hangs"] as const) {
    test(`when renewals are ${fault}: handlers are aborted before the broker's deadline`, async () => {
      const { world, worker, aborted, seen } = await losing(fault);
      await world.until(() => aborted.length > 0);
      expect(aborted[0]?.at).toBeLessThan(2_000);
      expect(aborted[0]?.at).toBeGreaterThanOrEqual(1_800);
      expect(aborted[0]?.reason).toBeInstanceOf(LeaseLostError);
      expect(aborted[0]?.reason).toHaveProperty("jobId", seen[0]?.id);
      // Nothing else of that lease starts, and the verdict of the one that ran is not sent.
      expect(seen.length).toBe(1);
      expect(world.broker.log.flatMap((asked) => asked.settle)).toEqual([]);
      expect(world.told("lost").map((one) => one.started)).toEqual([true, false, false, false]);
      expect(worker.stats()[0]?.held).toBe(0);
      world.broker.fault = () => undefined;
      await world.platform.run(worker.stop());
    });
  }

  test("its jobs come again as suspects, with the attempt charged", async () => {
    const { world, worker, aborted, seen } = await losing("lost");
    await world.until(() => aborted.length > 0);
    world.broker.fault = () => undefined;
    await world.until(() => seen.length > 1);
    expect(seen[1]?.id).toBe(seen[0]?.id as string);
    expect(seen[1]).toMatchObject({ attempt: 2, suspect: true });
    await world.platform.run(worker.stop());
  });

  test("because the broker says so: the same, at once", async () => {
    const world = new World();
    await world.add(1);
    let reason: unknown;
    const worker = await world.start(
      async (job) => {
        reason = await abortOf(job);
      },
      { leaseMs: 3_000, safetyPollMs: 1_000_000 },
    );
    await world.platform.pass(10);
    // Somebody gives its lease away.
    await world.engineQueue().abandon?.([world.told("claimed")[0]?.leaseId as string]);
    await world.until(() => reason !== undefined);
    expect(world.platform.now()).toBe(1_000);
    expect(reason).toBeInstanceOf(LeaseLostError);
    await world.platform.run(worker.stop());
  });

  test("while its verdicts wait to be sent: they are not sent", async () => {
    const world = new World();
    await world.add(2);
    let away = false;
    world.broker.fault = () => (away ? "lost" : undefined);
    const worker = await world.start(world.takes(100), { leaseMs: 1_000, prefetch: 2 });
    await world.platform.pass(50);
    away = true;
    await world.until(() => world.told("lost").length === 2);
    expect(world.platform.now()).toBeLessThan(1_000);
    const sent = world.broker.log.length;
    away = false;
    await world.platform.pass(150);
    // The jobs were finished, so each is told lost as started; what leaves from now on are claims.
    expect(world.broker.log.slice(sent).flatMap((asked) => asked.settle)).toEqual([]);
    expect(worker.stats()[0]).toMatchObject({ acked: 0, lost: 2, held: 0 });
    await world.untilEmpty();
    await world.platform.run(worker.stop());
  });

  test("without the worker's knowledge: the broker's word on the verdict counts", async () => {
    for (const lacks of [[], ["exchange"]] as const) {
      const world = new World({ lacks });
      await world.add(1);
      const worker = await world.start(world.takes(100), { safetyPollMs: 1_000_000 });
      await world.platform.pass(50);
      await world.engineQueue().abandon?.([world.told("claimed")[0]?.leaseId as string]);
      await world.until(() => world.told("lost").length > 0);
      expect(worker.stats()[0]).toMatchObject({ acked: 0, lost: 1 });
      await world.untilEmpty();
      await world.platform.run(worker.stop());
      expect(worker.stats()[0]).toMatchObject({ acked: 1, lost: 1 });
    }
  });

  test("while its verdicts are on their way: what the broker took counts", async () => {
    const world = new World();
    await world.add(1);
    world.broker.fault = (asked) => {
      if (asked.settle.length > 0) return { delayMs: 0, replyMs: 180 };
      return asked.verb === "renew" ? "lost" : undefined;
    };
    const worker = await world.start(world.takes(850), {
      leaseMs: 1_000,
      requestTimeoutMs: 300,
      safetyPollMs: 1_000_000,
    });
    await world.until(() => world.told("settled").length === 1);
    // The lease ran out at 950 ms by the worker's clock; the answer came at 1,030 ms.
    expect(world.platform.now()).toBeGreaterThan(1_000);
    expect(worker.stats()[0]).toMatchObject({ acked: 1, lost: 0, held: 0 });
    expect(await world.sizes()).toMatchObject({ ready: 0, held: 0 });
    await world.platform.run(worker.stop());
  });
});

describe("timers that fire late", () => {
  test("of a lease claimed ahead nothing starts that ran out while the batch before it computed", async () => {
    const world = new World({ roundTripMs: 30 });
    await world.add(40);
    let spent = false;
    const stale: number[] = [];
    const worker = await world.start(
      async (job) => {
        const claim = world.broker.claims.find((asked) => asked.claim?.leaseId === job.leaseId);
        const age = world.platform.now() - (claim?.at ?? 0);
        if (age >= 950) stale.push(age);
        await world.platform.sleep(10);
        if (spent || (worker.stats()[0]?.held ?? 0) <= 4) return;
        spent = true;
        world.platform.spend(2_000);
      },
      { leaseMs: 1_000, prefetch: 4 },
    );
    await world.untilEmpty();
    await world.platform.run(worker.stop());
    expect(spent).toBe(true);
    expect(stale).toEqual([]);
    expect(new Set(world.told("settled").map((one) => one.jobId)).size).toBe(40);
  });

  test("a lease that ran out while code computed is noticed when the handler ends", async () => {
    const world = new World();
    await world.add(3);
    let spent = false;
    const ran: string[] = [];
    const worker = await world.start(
      async (job) => {
        ran.push(job.id);
        await Promise.resolve();
        if (spent) return;
        spent = true;
        world.platform.spend(2_500);
      },
      { leaseMs: 1_000, prefetch: 3, safetyPollMs: 1_000_000 },
    );
    await world.platform.pass(0);
    expect(world.told("lost").length).toBe(3);
    expect(settledUnder(world, world.told("claimed")[0]?.leaseId)).toBe(0);
    expect(worker.stats()[0]?.held).toBe(0);
    expect(ran.length).toBeGreaterThanOrEqual(1);
    await world.untilEmpty();
    expect(new Set(ran).size).toBe(3);
    await world.platform.run(worker.stop());
  });

  test("nothing that waits behind it starts, batches included", async () => {
    for (const batchSize of [1, 2]) {
      const world = new World();
      await world.add(8);
      let calls = 0;
      const leases: string[] = [];
      const worker = await world.startDefinition(
        defineWorker({
          queues: [
            queue("work").handleBatch(
              (jobs) => {
                calls += 1;
                leases.push(...jobs.map((job) => job.leaseId));
                if (calls === 1) world.platform.spend(1_200);
              },
              { batchSize, prefetch: 8, leaseMs: 1_000 },
            ),
          ],
        }),
      );
      await world.untilEmpty();
      // Of the first lease only what was in the first call.
      expect(leases.filter((id) => id === leases[0]).length).toBe(batchSize);
      await world.platform.run(worker.stop());
    }
  });

  test("a verdict is not sent when its lease ran out in a pause that no timer looked at", async () => {
    const world = new World();
    await world.add(1);
    const worker = await world.start(world.takes(10), { leaseMs: 1_000, safetyPollMs: 1_000_000 });
    world.broker.fault = (asked) => (asked.settle.length > 0 && asked.nth < 2 ? "lost" : undefined);
    await world.until(() => world.told("brokerError").length === 1);
    const leaseId = world.told("claimed")[0]?.leaseId;
    const sent = settledUnder(world, leaseId);
    world.platform.spend(5_000);
    await world.platform.pass(200);
    expect(settledUnder(world, leaseId)).toBe(sent);
    expect(worker.stats()[0]).toMatchObject({ lost: 1 });
    await world.untilEmpty();
    await world.platform.run(worker.stop());
  });
});
