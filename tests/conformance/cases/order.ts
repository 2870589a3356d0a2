import type { BrokerQueue, Delivery, NewJob, Priority } from "../../../src/broker.ts";
import { type ConformanceCase, LONG_MS } from "../../support/conformance.ts";
import { same, that } from "../../support/conformance_assert.ts";
import {
  ACK,
  claim,
  drain,
  ids,
  idsOf,
  job,
  put,
  RELEASE,
  RETRY,
  settle,
  take,
} from "../../support/conformance_steps.ts";

async function fill(queue: BrokerQueue, priority: Priority, count: number): Promise<void> {
  const jobs = idsOf(`${priority}-`, count).map((id): NewJob => job(id, { priority }));
  for (let at = 0; at < count; at += 100) await put(queue, ...jobs.slice(at, at + 100));
}

function count(deliveries: readonly Delivery[], priority: Priority): number {
  return deliveries.filter((one) => one.priority === priority).length;
}

/** Delays and priorities: what may come when, and before what. */
export const orderCases: readonly ConformanceCase[] = [
  {
    name: "delay: a job comes after its delay, not before",
    needs: ["delay"],
    async run({ queue, other, shortMs, passShort }) {
      await put(queue, job("a", { delayMs: shortMs }), "b");
      same(ids(await drain(queue)), ["b"], "before");
      await passShort();
      const [delivery] = await take(other);
      same([delivery?.id, delivery?.attempt, delivery?.suspect], ["a", 1, false], "after");
    },
  },
  {
    name: "delay: what is due comes by its due time",
    needs: ["delay"],
    async run({ queue, shortMs, passShort }) {
      await put(
        queue,
        job("third", { delayMs: shortMs * 0.9 }),
        job("first", { delayMs: shortMs * 0.3 }),
        job("second", { delayMs: shortMs * 0.6 }),
      );
      await passShort();
      same(ids(await take(queue)), ["first", "second", "third"], "the claim");
    },
  },
  {
    name: "delay: what came due joins the tail of its level",
    needs: ["delay"],
    async run({ queue, shortMs, passShort }) {
      await put(queue, job("a", { delayMs: shortMs }), "b", "c");
      await passShort();
      same(ids(await take(queue)), ["b", "c", "a"], "the claim");
    },
  },
  {
    name: "delay: however many came due together, no claim comes back empty before all were had",
    needs: ["delay"],
    async run({ queue, shortMs, passShort }) {
      const wanted = idsOf("a", 1200);
      for (let at = 0; at < wanted.length; at += 100) {
        await put(queue, ...wanted.slice(at, at + 100).map((id) => job(id, { delayMs: shortMs / 2 })));
      }
      await passShort();
      same(ids(await drain(queue)).sort(), wanted.sort(), "what came");
    },
  },
  {
    name: "delay: a claim short of jobs tells when the next is due",
    needs: ["delay"],
    async run({ queue, passMs }) {
      await put(queue, job("a", { delayMs: 2 * LONG_MS }), job("b", { delayMs: LONG_MS }), "c");
      await passMs(20);
      const { deliveries, nextDueMs } = await claim(queue, 4);
      same(ids(deliveries), ["c"], "what is there");
      that(
        nextDueMs !== undefined && nextDueMs > LONG_MS / 2 && nextDueMs <= LONG_MS - 15,
        `nextDueMs is ${nextDueMs}`,
      );
    },
  },
  {
    name: "priority: high before normal before low, each oldest first",
    needs: ["priority"],
    async run({ queue }) {
      await put(
        queue,
        job("low1", { priority: "low" }),
        job("normal1"),
        job("high1", { priority: "high" }),
        job("low2", { priority: "low" }),
        job("normal2"),
        job("high2", { priority: "high" }),
      );
      const deliveries = await take(queue, 6);
      same(ids(deliveries), ["high1", "high2", "normal1", "normal2", "low1", "low2"], "the claim");
      same(
        deliveries.map((one) => one.priority),
        ["high", "high", "normal", "normal", "low", "low"],
        "their priorities",
      );
    },
  },
  {
    name: "priority: a job of high priority that comes later goes first",
    needs: ["priority"],
    async run({ queue }) {
      await put(queue, "a", "b");
      await put(queue, job("urgent", { priority: "high" }));
      same(ids(await take(queue, 1)), ["urgent"], "the first claim");
      same(ids(await take(queue, 2)), ["a", "b"], "the second claim");
    },
  },
  {
    name: "priority: a waiting level gets every eighth delivery, counted over claims of one",
    needs: ["priority"],
    async run({ queue }) {
      await fill(queue, "high", 40);
      await fill(queue, "low", 10);
      const taken: Delivery[] = [];
      for (let n = 1; n <= 40; n += 1) {
        taken.push(...(await take(queue, 1)));
        that(count(taken, "low") >= Math.floor(n / 8), `${count(taken, "low")} low among the first ${n}`);
      }
      that(count(taken, "high") >= 30, `high ones still go first: ${count(taken, "high")} of 40`);
    },
  },
  {
    name: "priority: a waiting level gets every eighth delivery, counted over claims of any size",
    needs: ["priority"],
    async run({ queue }) {
      await fill(queue, "normal", 200);
      await fill(queue, "low", 40);
      const taken: Delivery[] = [];
      for (const max of [3, 16, 1, 7, 8, 33, 5, 16, 64]) {
        taken.push(...(await take(queue, max)));
        const low = count(taken, "low");
        that(low >= Math.floor(taken.length / 8), `${low} low among the first ${taken.length}`);
      }
      that(count(taken, "normal") >= 110, `normal ones still go first: ${count(taken, "normal")} of 153`);
    },
  },
  {
    name: "priority: neither of two lower levels starves",
    needs: ["priority"],
    async run({ queue }) {
      await fill(queue, "high", 160);
      await fill(queue, "normal", 60);
      await fill(queue, "low", 60);
      const taken: Delivery[] = [];
      while (taken.length < 160) taken.push(...(await take(queue, 8)));
      that(count(taken, "normal") >= 8, `normal: ${count(taken, "normal")} of 160`);
      that(count(taken, "low") >= 8, `low: ${count(taken, "low")} of 160`);
      that(count(taken, "high") >= 100, `high: ${count(taken, "high")} of 160`);
    },
  },
  {
    name: "priority: a lower level alone is served at full",
    needs: ["priority"],
    async run({ queue }) {
      await fill(queue, "low", 50);
      same((await take(queue, 30)).length, 30, "the first claim");
      same((await take(queue, 30)).length, 20, "the second claim");
    },
  },
  {
    name: "priority: kept by a release, a retry and a delay",
    needs: ["priority", "delay"],
    async run({ queue, shortMs, passShort }) {
      await put(
        queue,
        job("a", { priority: "high" }),
        job("b", { priority: "high" }),
        job("c", { priority: "high" }),
        job("d", { priority: "high", delayMs: shortMs }),
      );
      const [a, b, c] = (await take(queue, 3)) as [Delivery, Delivery, Delivery];
      await put(queue, "later");
      await queue.settle([
        { delivery: a, verdict: RETRY },
        { delivery: b, verdict: RELEASE },
        { delivery: c, verdict: { kind: "retry", delayMs: shortMs } },
      ]);
      await passShort();
      const again = await take(queue);
      same(again.at(-1)?.id, "later", "the normal one comes last");
      same(ids(again).sort(), ["a", "b", "c", "d", "later"], "all came");
      that(
        again.slice(0, 4).every((one) => one.priority === "high"),
        "the others are high still",
      );
    },
  },
  {
    name: "priority: a suspect comes before new jobs of its level, not before a higher one",
    needs: ["priority"],
    async run({ open, shortMs, passShort }) {
      const { queue } = await open({ leaseMs: shortMs });
      await put(queue, "a");
      await take(queue);
      await put(queue, "b", job("urgent", { priority: "high" }));
      await passShort();
      const deliveries = await take(queue);
      same(ids(deliveries), ["urgent", "a", "b"], "the claim");
      await settle(queue, deliveries, ACK);
    },
  },
];
