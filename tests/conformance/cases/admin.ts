import type { Delivery } from "../../../src/broker.ts";
import { type ConformanceCase, LONG_MS } from "../../support/conformance.ts";
import { rejects, same, that } from "../../support/conformance_assert.ts";
import {
  ACK,
  claim,
  DEAD,
  drain,
  ids,
  idsOf,
  job,
  leaseId,
  put,
  RELEASE,
  RETRY,
  settle,
  take,
} from "../../support/conformance_steps.ts";

/** Looking at a queue and managing it: sizes, peek, clear, redrive, pause, memo. */
export const adminCases: readonly ConformanceCase[] = [
  {
    name: "sizes: every state is counted",
    needs: ["sizes", "delay"],
    async run({ queue, other }) {
      same(await queue.sizes!(), { ready: 0, delayed: 0, held: 0, dead: 0, paused: false }, "at first");
      await put(queue, ...idsOf("a", 10), job("later", { delayMs: LONG_MS }));
      const deliveries = await take(queue, 6);
      await queue.settle([
        { delivery: deliveries[0] as Delivery, verdict: ACK },
        { delivery: deliveries[1] as Delivery, verdict: DEAD },
        { delivery: deliveries[2] as Delivery, verdict: { kind: "retry", delayMs: LONG_MS } },
        { delivery: deliveries[3] as Delivery, verdict: RELEASE },
      ]);
      same(await other.sizes!(), { ready: 5, delayed: 2, held: 2, dead: 1, paused: false }, "at last");
    },
  },
  {
    name: "sizes: what came due counts as ready",
    needs: ["sizes", "delay"],
    async run({ queue, shortMs, passShort }) {
      await put(queue, job("a", { delayMs: shortMs }), job("b", { delayMs: LONG_MS }));
      await passShort();
      same(await queue.sizes!(), { ready: 1, delayed: 1, held: 0, dead: 0, paused: false }, "the sizes");
      same(ids(await take(queue)), ["a"], "a claim");
    },
  },
  {
    name: "sizes: looking takes no lease back",
    needs: ["sizes", "peek", "fenced"],
    async run({ open, shortMs, passShort }) {
      const { queue, other } = await open({ leaseMs: shortMs });
      await put(queue, "a");
      const deliveries = await take(queue);
      await passShort();
      await other.sizes!();
      await other.peek!("ready", 10);
      await other.peek!("held", 10);
      same(await settle(queue, deliveries, ACK), ["done"], "the late ack");
    },
  },
  {
    name: "peek: ready jobs in the order in which they would come, at most limit",
    needs: ["peek", "priority"],
    async run({ queue, other }) {
      await put(queue, "a", "b", job("urgent", { priority: "high" }), job("idle", { priority: "low" }));
      const seen = await other.peek!("ready", 10);
      same(ids(seen), ["urgent", "a", "b", "idle"], "all");
      same(
        seen.map((one) => [one.state, one.attempts, one.priority]),
        [
          ["ready", 0, "high"],
          ["ready", 0, "normal"],
          ["ready", 0, "normal"],
          ["ready", 0, "low"],
        ],
        "state, attempts and priority",
      );
      same(ids(await queue.peek!("ready", 2)), ["urgent", "a"], "two of them");
      same(ids(await take(queue)), ["urgent", "a", "b", "idle"], "looking changed nothing");
    },
  },
  {
    name: "peek: delayed jobs by due time",
    needs: ["peek", "delay"],
    async run({ queue }) {
      await put(queue, job("b", { delayMs: 2 * LONG_MS }), job("a", { delayMs: LONG_MS }), "now");
      const seen = await queue.peek!("delayed", 10);
      same(ids(seen), ["a", "b"], "the jobs");
      const [a, b] = seen;
      that(a?.dueAt !== undefined && b?.dueAt !== undefined, "dueAt is known");
      that(Math.abs(b.dueAt - a.dueAt - LONG_MS) <= 5, `they are due ${b.dueAt - a.dueAt} ms apart`);
      that(Math.abs(a.dueAt - a.enqueuedAt - LONG_MS) <= 5, "dueAt is on the same clock as enqueuedAt");
      same(a.state, "delayed", "the state");
    },
  },
  {
    name: "peek: held jobs with the attempt charged",
    needs: ["peek"],
    async run({ queue }) {
      await put(queue, "a", "b", "c");
      await settle(queue, await take(queue, 1), RETRY);
      await take(queue);
      const seen = await queue.peek!("held", 10);
      same(ids(seen), ["b", "c", "a"], "the jobs");
      same(
        seen.map((one) => [one.state, one.attempts]),
        [
          ["held", 1],
          ["held", 1],
          ["held", 2],
        ],
        "state and attempts",
      );
    },
  },
  {
    name: "peek: dead letters oldest first",
    needs: ["peek"],
    async run({ queue, passMs }) {
      await put(queue, "a", "b", "c");
      const [a, b, c] = (await take(queue)) as [Delivery, Delivery, Delivery];
      for (const delivery of [b, c, a]) {
        await settle(queue, [delivery], { kind: "dead", error: `no ${delivery.id}` });
        await passMs(3);
      }
      const seen = await queue.peek!("dead", 10);
      same(
        seen.map((one) => [one.id, one.state, one.error]),
        [
          ["b", "dead", "no b"],
          ["c", "dead", "no c"],
          ["a", "dead", "no a"],
        ],
        "the dead letters",
      );
      const times = seen.map((one) => one.diedAt as number);
      same(
        times.slice().sort((x, y) => x - y),
        times,
        "the times of death",
      );
      same(ids(await queue.peek!("dead", 2)), ["b", "c"], "two of them");
    },
  },
  {
    name: "clear: removes what it names and nothing else, and answers how much",
    needs: ["clear", "sizes", "delay"],
    async run({ queue, other }) {
      const fill = async () => {
        await put(queue, "x", "y", "z", "held");
        const taken = await take(queue, 4);
        await settle(queue, taken.slice(0, 3), DEAD);
        await put(queue, "a", "b", job("later", { delayMs: LONG_MS }));
        return taken.slice(3);
      };
      const held = await fill();
      same(await other.clear!(["ready"]), 2, "ready");
      same(await queue.sizes!(), { ready: 0, delayed: 1, held: 1, dead: 3, paused: false }, "without ready");
      same(await other.clear!(["dead"]), 3, "dead");
      same(await queue.sizes!(), { ready: 0, delayed: 1, held: 1, dead: 0, paused: false }, "without dead");
      same(await other.clear!(["delayed"]), 1, "delayed");
      same(
        await queue.sizes!(),
        { ready: 0, delayed: 0, held: 1, dead: 0, paused: false },
        "without delayed",
      );
      same(await other.clear!(["ready", "delayed", "dead"]), 0, "nothing left to clear");
      same(await settle(queue, held, ACK), ["done"], "the held one finishes");
      await fill();
      same(await other.clear!(["dead", "ready", "delayed"]), 6, "all at once");
      same(await other.clear!([]), 0, "none");
    },
  },
  {
    name: "clear: a held job may still be released and then comes again",
    needs: ["clear"],
    async run({ queue }) {
      await put(queue, "a", "b");
      const held = await take(queue, 1);
      await queue.clear!(["ready", "delayed", "dead"]);
      same(await settle(queue, held, RELEASE), ["done"], "the release");
      same(ids(await drain(queue)), ["a"], "what comes");
      await put(queue, "c");
      same(ids(await drain(queue)), ["c"], "the queue goes on");
    },
  },
  {
    name: "redrive: dead letters come back, oldest first, no attempt charged",
    needs: ["redrive", "sizes"],
    async run({ queue, other }) {
      await put(queue, "a", "b", "c");
      await settle(queue, await take(queue), RETRY);
      await settle(queue, await take(queue), DEAD);
      await put(queue, "d");
      same(await other.redrive!({ limit: 100 }), 3, "how many");
      same(await queue.sizes!(), { ready: 4, delayed: 0, held: 0, dead: 0, paused: false }, "the sizes");
      const again = await take(queue);
      same(ids(again).sort(), ["a", "b", "c", "d"], "the jobs");
      same(ids(again.filter((one) => one.id !== "d")), ["a", "b", "c"], "their order");
      that(
        again.every((one) => one.attempt === 1 && !one.suspect),
        "attempts start anew",
      );
      same(await other.redrive!({ limit: 100 }), 0, "nothing left");
    },
  },
  {
    name: "redrive: by ids, and at most limit",
    needs: ["redrive", "peek"],
    async run({ queue }) {
      await put(queue, ...idsOf("a", 6));
      await settle(queue, await take(queue), DEAD);
      same(await queue.redrive!({ ids: ["a5", "a2", "none"], limit: 100 }), 2, "two by id");
      same(ids(await drain(queue)), ["a2", "a5"], "those two came");
      same(await queue.redrive!({ limit: 3 }), 3, "three by limit");
      same(ids(await drain(queue)), ["a1", "a3", "a4"], "the oldest came");
      same(await queue.redrive!({ ids: [], limit: 100 }), 0, "none by id");
      same(ids(await queue.peek!("dead", 10)), ["a6"], "the rest is dead still");
    },
  },
  {
    name: "redrive: keeps the priority",
    needs: ["redrive", "priority"],
    async run({ queue }) {
      await put(queue, job("urgent", { priority: "high" }));
      await settle(queue, await take(queue), DEAD);
      await put(queue, "a");
      await queue.redrive!({ limit: 1 });
      same(ids(await take(queue)), ["urgent", "a"], "the claim");
    },
  },
  {
    name: "pause: no claim takes anything, over any connection, until resumed",
    needs: ["pause", "sizes"],
    async run({ queue, other }) {
      await put(queue, "a");
      await queue.pause!();
      same(await take(queue), [], "a claim");
      same(await take(other), [], "a claim over another connection");
      await put(other, "b");
      same(await take(queue), [], "after an enqueue");
      same((await other.sizes!()).paused, true, "the sizes tell");
      await queue.pause!();
      await other.resume!();
      await other.resume!();
      same((await queue.sizes!()).paused, false, "the sizes tell again");
      same(ids(await take(queue)), ["a", "b"], "the claim");
    },
  },
  {
    name: "pause: held jobs go on, and a lost reply can still be had",
    needs: ["pause"],
    async run({ queue, other }) {
      await put(queue, "a", "b", "c");
      const id = leaseId();
      const deliveries = await take(queue, 3, id);
      await other.pause!();
      same(await queue.renew([id]), ["held"], "the renewal");
      same(await take(queue, 3, id), deliveries, "the claim sent again");
      same(await settle(queue, deliveries.slice(0, 2), ACK), ["done", "done"], "the acks");
      same(await settle(queue, deliveries.slice(2), RELEASE), ["done"], "the release");
      same(await take(queue), [], "a new claim");
      await other.resume!();
      same(ids(await take(queue)), ["c"], "after the resume");
    },
  },
  {
    name: "pause: survives the closing of every connection that knew of it",
    needs: ["pause", "sizes"],
    async run({ open, connect, fresh }) {
      const name = fresh("paused");
      const settings = { leaseMs: LONG_MS, requestTimeoutMs: 10_000, dedupeWindowMs: LONG_MS };
      const first = connect();
      const there = first.queue(name, settings);
      await there.open();
      await put(there, "a");
      await there.pause!();
      await first.close();
      const { queue } = await open({ name });
      same((await queue.sizes!()).paused, true, "it is paused still");
      same(await take(queue), [], "a claim");
      await queue.resume!();
      same(ids(await take(queue)), ["a"], "after the resume");
    },
  },
  {
    name: "pause: nothing is in sight while it lasts",
    needs: ["pause", "delay"],
    async run({ queue, shortMs, passShort }) {
      await put(queue, job("a", { delayMs: shortMs }));
      await queue.pause!();
      await passShort();
      const { deliveries, nextDueMs } = await claim(queue, 4);
      same(deliveries, [], "the claim");
      // Were it 0, a loop that goes by it would spin until somebody resumes the queue.
      that(nextDueMs === undefined || nextDueMs > 0, `nextDueMs is ${nextDueMs}`);
    },
  },
  {
    name: "memo: is kept with the queue and comes when asked for",
    needs: ["memo", "exchange"],
    async run({ queue, other }) {
      const recall = (connection = queue) =>
        connection.claim({ leaseId: leaseId(), max: 1, waitMs: 0, recall: true });
      same((await recall()).memo, undefined, "at first");
      const memo = '{"average":12.5} ~!|';
      await queue.exchange!({ settle: [], renew: [], remember: memo });
      same((await recall()).memo, memo, "then");
      same((await recall(other)).memo, memo, "over another connection");
      same((await claim(queue, 1)).memo, undefined, "unasked");
      await other.exchange!({ settle: [], renew: [], remember: "x".repeat(256) });
      same((await recall()).memo, "x".repeat(256), "replaced");
      await queue.exchange!({ settle: [], renew: [] });
      same((await recall()).memo, "x".repeat(256), "an exchange without one leaves it");
      await other.open();
      same(other.memo, "x".repeat(256), "opening finds it");
    },
  },
  {
    name: "memo: one too long or not printable is refused",
    needs: ["memo", "exchange"],
    async run({ queue }) {
      for (const remember of ["x".repeat(257), "a\nb", "ä"]) {
        await rejects(
          queue.exchange!({ settle: [], renew: [], remember }),
          "RangeError",
          ["remember"],
          "the exchange",
        );
      }
    },
  },
];
