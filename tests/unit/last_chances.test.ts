import { describe, expect, test } from "bun:test";
import type { HandlerOptions } from "../../src/options.ts";
import { queue } from "../../src/queue.ts";
import { SoloGate, type SoloMember } from "../../src/solo.ts";
import type { RunningWorker } from "../../src/start.ts";
import { defineWorker } from "../../src/worker.ts";
import type { FaultyBroker } from "../support/faulty_broker.ts";
import { heeds } from "../support/handling.ts";
import { noStrayRejections, World } from "../support/world.ts";

noStrayRejections();

/** A fleet of one worker at a time: when a poisoned job is run, the worker is gone, and another starts. */
class Fleet {
  readonly world = new World();
  readonly ran = new Map<string, number>();
  /** How many jobs the worker held, in all its queues, when a poisoned job was on its last attempt. */
  readonly heldAtLast: number[] = [];
  kills = 0;
  #worker: RunningWorker | undefined;
  #line: FaultyBroker | undefined;
  readonly #queues: readonly string[];
  readonly #options: HandlerOptions;

  constructor(queues: readonly string[], options: HandlerOptions) {
    this.#queues = queues;
    this.#options = options;
  }

  async start(): Promise<void> {
    const { world } = this;
    const line = world.broker.another();
    this.#line = line;
    const dead = () => this.#line !== line;
    const handler = async (job: { id: string; attempt: number }) => {
      if (dead()) return new Promise<void>(() => {});
      this.ran.set(job.id, (this.ran.get(job.id) ?? 0) + 1);
      await world.platform.sleep(5);
      if (dead()) return new Promise<void>(() => {});
      if (job.id.startsWith("poison")) {
        if (job.attempt === 3) {
          this.heldAtLast.push((this.#worker?.stats() ?? []).reduce((sum, one) => sum + one.held, 0));
        }
        this.kill(line);
        return new Promise<void>(() => {});
      }
    };
    this.#worker = await world.startDefinition(
      defineWorker({
        queues: this.#queues.map((name) =>
          queue(name).handle(handler, { maxAttempts: 3, leaseMs: 2_000, prefetch: 16, ...this.#options }),
        ),
        graceMs: 0,
        abortWaitMs: 0,
        settleWaitMs: 0,
      }),
      line,
    );
  }

  /** The process is gone: nothing of it reaches the broker any more. */
  kill(line: FaultyBroker): void {
    this.kills += 1;
    line.fault = () => "hangs";
    this.#line = undefined;
    void this.#worker?.stop();
    void this.start();
  }

  async untilEmpty(): Promise<void> {
    for (const name of this.#queues) await this.world.untilEmpty(name, 600_000);
  }

  async dead(): Promise<string[]> {
    const letters = await Promise.all(this.#queues.map((name) => this.world.peek("dead", name)));
    return letters.flat().map((one) => one.id);
  }

  async stop(): Promise<void> {
    await this.world.platform.run(this.#worker?.stop() ?? Promise.resolve());
  }
}

describe("a job that kills its worker", () => {
  for (const queues of [["one"], ["one", "two"]]) {
    for (const concurrency of [1, 4]) {
      for (const at of [0, 5, 9]) {
        test(`${queues.length} queue(s), ${concurrency} slot(s), place ${at}: dead after its attempts, no neighbour is`, async () => {
          const fleet = new Fleet(queues, { concurrency });
          const { world } = fleet;
          for (const name of queues) await world.add(at, {}, name, `before-${name}-`);
          await world.add(1, {}, "one", "poison");
          for (const name of queues) await world.add(10 - at, {}, name, `after-${name}-`);
          await fleet.start();
          await fleet.untilEmpty();
          expect(await fleet.dead()).toEqual([expect.stringMatching(/^poison/)]);
          expect(fleet.kills).toBe(3);
          // On its last attempt nothing but it was held, in no queue.
          expect(fleet.heldAtLast).toEqual([1]);
          expect(fleet.ran.size).toBe(10 * queues.length + 1);
          const [letter] = await world.peek("dead", "one");
          expect(letter?.error).toContain("vanished");
          expect(letter?.attempts).toBe(3);
          await fleet.stop();
        });
      }
    }
  }

  test("several of them, all of them at once: each dies alone, no neighbour does", async () => {
    for (const concurrency of [1, 4]) {
      const fleet = new Fleet(["one"], { concurrency });
      await fleet.world.add(3, {}, "one", "poison-a-");
      await fleet.world.add(10, {}, "one", "good-");
      await fleet.world.add(2, {}, "one", "poison-b-");
      await fleet.start();
      await fleet.untilEmpty();
      const dead = await fleet.dead();
      expect(dead.length).toBe(5);
      expect(dead.every((id) => id.startsWith("poison"))).toBe(true);
      expect(fleet.heldAtLast).toEqual([1, 1, 1, 1, 1]);
      await fleet.stop();
    }
  });
});

/** Makes suspects: claims jobs so often by a worker that vanishes each time. */
async function vanish(world: World, times: number, max: number, name = "work"): Promise<void> {
  for (let i = 0; i < times; i += 1) {
    await world
      .engineQueue(name, 100)
      .claim({ leaseId: `gone-${name}-${world.platform.now()}-${i}`, max, waitMs: 0 });
    await world.platform.pass(101);
  }
}

describe("suspects", () => {
  test("on their last attempt each get through, one after the other, and each is named", async () => {
    for (const lacks of [[], ["exchange"]] as const) {
      const world = new World({ lacks });
      const ids = await world.add(20);
      await vanish(world, 2, 20);
      await world.add(10);
      let most = 0;
      const worker = await world.start(
        async (job) => {
          await world.platform.sleep(5);
          if (job.attempt === 3) most = Math.max(most, worker.stats()[0]?.held ?? 0);
        },
        { maxAttempts: 3, prefetch: 16, concurrency: 4 },
      );
      await world.untilEmpty();
      await world.platform.run(worker.stop());
      expect(most).toBe(1);
      expect(new Set(world.told("lastChance").map((one) => one.jobId))).toEqual(new Set(ids));
      expect(worker.stats()[0]).toMatchObject({ acked: 30, dead: 0, lost: 0 });
      // Given back at most once each before it ran.
      expect(worker.stats()[0]?.released).toBeLessThanOrEqual(20);
    }
  });

  test("with attempts left slow nothing down: 100 of them run in batches as ever", async () => {
    const world = new World();
    await world.add(100);
    await vanish(world, 1, 100);
    const worker = await world.start(() => {}, { prefetch: 16 });
    await world.untilEmpty();
    await world.platform.run(worker.stop());
    expect(world.told("lastChance")).toEqual([]);
    expect(world.told("claimed").filter((one) => one.got > 0).length).toBe(7);
    expect(worker.stats()[0]).toMatchObject({ acked: 100, released: 0 });
  });

  test("that were retried by their handler are none any more", async () => {
    const world = new World();
    await world.add(1);
    await vanish(world, 1, 1);
    let tries = 0;
    const worker = await world.start(
      () => {
        tries += 1;
        if (tries === 1) throw new Error("not yet");
      },
      { maxAttempts: 3, backoff: () => 0 },
    );
    await world.untilEmpty();
    expect(tries).toBe(2);
    expect(world.told("lastChance")).toEqual([]);
    await world.platform.run(worker.stop());
  });

  test("whose attempts are used up are dead at once, unrun", async () => {
    const world = new World();
    await world.add(2);
    await vanish(world, 3, 2);
    const worker = await world.start(() => {}, { maxAttempts: 3 });
    await world.untilEmpty();
    expect(world.told("started")).toEqual([]);
    expect((await world.peek("dead")).map((one) => [one.attempts, one.error])).toEqual(
      Array(2).fill([3, "The worker vanished while it held attempt 3 of 3; no attempt is left"]),
    );
    await world.platform.run(worker.stop());
  });

  test("behind a stream of high jobs get their turn, and the stream is not held up by it", async () => {
    const world = new World();
    const [id] = await world.add(1, { priority: "low" });
    await vanish(world, 2, 1);
    await world.add(500, { priority: "high" });
    const worker = await world.start(world.takes(5), { maxAttempts: 3, prefetch: 16 });
    await world.untilEmpty();
    await world.platform.run(worker.stop());
    const place = world.told("started").findIndex((one) => one.jobId === id);
    expect(place).toBeLessThan(100);
    // Seldom given back: each time costs a round alone.
    expect(worker.stats()[0]?.released).toBeLessThanOrEqual(4);
    expect(world.told("claimed").length).toBeLessThan(80);
  });

  test("taken by another worker meanwhile: the worker goes on in batches", async () => {
    const world = new World();
    await world.add(1);
    await vanish(world, 2, 1);
    await world.add(200);
    const worker = await world.start(world.takes(5), { maxAttempts: 3, prefetch: 16 });
    await world.until(() => (worker.stats()[0]?.released ?? 0) > 0);
    // It is at the head of the queue; somebody else is faster.
    await world.engineQueue().claim({ leaseId: "other", max: 1, waitMs: 0 });
    await world.engineQueue().settle([]);
    await world.until(() => world.told("settled").length >= 190);
    expect(world.told("claimed").length).toBeLessThan(60);
    await world.platform.run(worker.stop());
  });

  test("a stop while one runs alone, or waits to: given back uncharged, still suspect", async () => {
    const world = new World();
    await world.add(2);
    await vanish(world, 2, 2);
    const worker = await world.start(heeds, { maxAttempts: 3, prefetch: 16 }, { graceMs: 10 });
    await world.until(() => world.told("lastChance").length === 1);
    await world.platform.run(worker.stop());
    const left = await world.peek("ready");
    expect(left.map((one) => one.attempts)).toEqual([2, 2]);
    const claimed = await world.engineQueue().claim({ leaseId: "look", max: 2, waitMs: 0 });
    expect(claimed.deliveries.map((one) => [one.attempt, one.suspect])).toEqual([
      [3, true],
      [3, true],
    ]);
  });

  test("a claim of another queue whose answer was lost counts as held", async () => {
    // What it may have taken must not be held beside a last chance.
    const world = new World();
    await world.add(1, {}, "a");
    await vanish(world, 2, 1, "a");
    await world.add(3, {}, "b");
    world.broker.fault = (asked) =>
      asked.queue === "b" && asked.claim !== undefined && asked.nth < 3 ? "replyLost" : undefined;
    let beside = -1;
    const worker = await world.startDefinition(
      defineWorker({
        queues: [
          queue("a").handle(
            async () => {
              beside = (await world.sizes("b")).held;
            },
            { maxAttempts: 3 },
          ),
          queue("b").handle(() => {}),
        ],
      }),
    );
    await world.untilEmpty("a");
    await world.untilEmpty("b");
    expect(beside).toBe(0);
    await world.platform.run(worker.stop());
  });

  test("an engine that waits is not left waiting by the other queue", async () => {
    const world = new World({ waits: true });
    await world.add(1, {}, "a");
    await vanish(world, 2, 1, "a");
    const worker = await world.startDefinition(
      defineWorker({
        queues: [queue("a").handle(() => {}, { maxAttempts: 3, prefetch: 4 }), queue("b").handle(() => {})],
      }),
    );
    const from = world.platform.now();
    await world.untilEmpty("a");
    expect(world.platform.now() - from).toBeLessThan(200);
    await world.platform.run(worker.stop());
  });
});

describe("the solo gate", () => {
  class Member implements SoloMember {
    isQuiet = true;
    wakes = 0;
    quiet(): boolean {
      return this.isQuiet;
    }
    emptyHanded(): boolean {
      return this.isQuiet;
    }
    wake(): void {
      this.wakes += 1;
    }
  }

  test("is owned by who wanted it first, then by the next", () => {
    const gate = new SoloGate();
    const [a, b] = [new Member(), new Member()];
    gate.join(a);
    gate.join(b);
    expect(gate.closed).toBe(false);
    gate.want(b);
    gate.want(a);
    gate.want(b);
    expect([gate.closed, gate.owns(a), gate.owns(b)]).toEqual([true, false, true]);
    gate.done(b);
    expect([gate.closed, gate.owns(a), gate.owns(b)]).toEqual([true, true, false]);
    expect(a.wakes).toBe(1);
    gate.done(a);
    expect(gate.closed).toBe(false);
  });

  test("wakes its owner when others change, and the others when it is given back", () => {
    const gate = new SoloGate();
    const [a, b] = [new Member(), new Member()];
    gate.join(a);
    gate.join(b);
    gate.want(a);
    gate.changed(b);
    gate.changed(a);
    expect(a.wakes).toBe(1);
    b.isQuiet = false;
    expect(gate.othersQuiet(a)).toBe(false);
    expect(gate.othersQuiet(b)).toBe(true);
    gate.done(a);
    gate.done(a);
    expect(b.wakes).toBe(1);
  });

  test("forgets who leaves", () => {
    const gate = new SoloGate();
    const [a, b] = [new Member(), new Member()];
    gate.join(a);
    gate.join(b);
    gate.want(a);
    a.isQuiet = false;
    gate.leave(a);
    expect(gate.closed).toBe(false);
    expect(gate.othersQuiet(b)).toBe(true);
  });
});
