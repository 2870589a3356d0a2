import { type ConformanceCase, LONG_MS } from "../../support/conformance.ts";
import { rejects, same, that } from "../../support/conformance_assert.ts";
import {
  ACK,
  claim,
  drain,
  ids,
  idsOf,
  job,
  leaseId,
  put,
  settle,
  take,
} from "../../support/conformance_steps.ts";

/** Claiming: what comes, in which order, how often, and what a repeated or late claim gets. */
export const claimCases: readonly ConformanceCase[] = [
  {
    name: "claim: jobs come in the order in which they were enqueued",
    needs: [],
    async run({ queue }) {
      await put(queue, "a", "b", "c");
      await put(queue, "d");
      same(ids(await take(queue)), ["a", "b", "c", "d"], "the claim");
    },
  },
  {
    name: "claim: at most max come, the rest stays for the next",
    needs: [],
    async run({ queue }) {
      await put(queue, "a", "b", "c", "d", "e");
      same(ids(await take(queue, 2)), ["a", "b"], "the first claim");
      same(ids(await take(queue, 2)), ["c", "d"], "the second claim");
      same(ids(await take(queue, 2)), ["e"], "the third claim");
    },
  },
  {
    name: "claim: an empty queue answers with none, and nothing in sight",
    needs: [],
    async run({ queue }) {
      const reply = await claim(queue, 16);
      same(reply.deliveries, [], "the deliveries");
      same(reply.nextDueMs, undefined, "nextDueMs");
    },
  },
  {
    name: "claim: nothing waits for a batch to fill",
    needs: [],
    async run({ queue }) {
      await put(queue, "a", "b", "c");
      // Were it to wait for a full batch, the case would run into its timeout.
      const reply = await queue.claim({ leaseId: leaseId(), max: 16, waitMs: 3_600_000 });
      same(ids(reply.deliveries), ["a", "b", "c"], "the claim");
    },
  },
  {
    name: "claim: a first delivery is waited for, and comes as soon as it is there",
    needs: ["waits"],
    async run({ queue, other }) {
      const waiting = queue.claim({ leaseId: leaseId(), max: 16, waitMs: 3_600_000 });
      await put(other, "a");
      same(ids((await waiting).deliveries), ["a"], "the claim that waited");
    },
  },
  {
    name: "claim: the signal ends the wait, and throws nothing away",
    needs: ["waits"],
    async run({ queue }) {
      const stop = new AbortController();
      const id = leaseId();
      const waiting = queue.claim({ leaseId: id, max: 16, waitMs: 3_600_000, signal: stop.signal });
      stop.abort();
      same((await waiting).deliveries, [], "the claim that was ended");
      await put(queue, "a");
      same(ids(await take(queue)), ["a"], "the next claim");
    },
  },
  {
    name: "claim: a delivery tells what was enqueued and how often it was handed out",
    needs: [],
    async run({ queue }) {
      await put(queue, job("a", { headers: { "content-type": "text/plain" } }), "b");
      const id = leaseId();
      const [a, b] = await take(queue, 2, id);
      that(a !== undefined && b !== undefined, "both came");
      same(a.id, "a", "id");
      same(a.leaseId, id, "leaseId");
      same(a.attempt, 1, "attempt");
      same(a.suspect, false, "suspect");
      same(a.priority, "normal", "priority");
      same({ ...a.headers }, { "content-type": "text/plain" }, "headers");
      same(a.body, "a", "body");
      same(a.broken, undefined, "broken");
      that(typeof a.token === "string" && a.token !== b.token, "tokens tell the deliveries of a lease apart");
      that(Number.isSafeInteger(a.enqueuedAt) && a.enqueuedAt >= 0, "enqueuedAt is a time");
      that(b.enqueuedAt >= a.enqueuedAt, "enqueuedAt does not go back");
    },
  },
  {
    name: "claim: sent again while the lease is held, it answers with the same deliveries",
    needs: [],
    async run({ queue }) {
      await put(queue, "a", "b", "c");
      const id = leaseId();
      const first = await take(queue, 2, id);
      same(await take(queue, 2, id), first, "the repeated claim");
      same(ids(await take(queue)), ["c"], "what is left for others");
      same(await settle(queue, first, ACK), ["done", "done"], "the settling");
    },
  },
  {
    name: "claim: sent again over another connection, it answers with the same deliveries",
    needs: ["fenced"],
    async run({ queue, other }) {
      await put(queue, "a", "b");
      const id = leaseId();
      const first = await take(queue, 2, id);
      same(await take(other, 2, id), first, "the repeated claim");
      same(await settle(other, first, ACK), ["done", "done"], "settling over the other connection");
    },
  },
  {
    name: "claim: sent again after part of it was settled, it answers with the rest",
    needs: [],
    async run({ queue }) {
      await put(queue, "a", "b", "c");
      const id = leaseId();
      const first = await take(queue, 3, id);
      await settle(queue, first.slice(1, 2), ACK);
      same(ids(await take(queue, 3, id)), ["a", "c"], "the repeated claim");
    },
  },
  {
    name: "claim: a late copy takes nothing once all was settled",
    needs: [],
    async run({ queue }) {
      await put(queue, "a");
      const id = leaseId();
      await settle(queue, await take(queue, 4, id), ACK);
      await put(queue, "b");
      same(await take(queue, 4, id), [], "the late copy");
      same(ids(await take(queue)), ["b"], "a new claim");
    },
  },
  {
    name: "claim: a late copy over another connection takes nothing once all was settled",
    needs: ["fenced"],
    async run({ queue, other }) {
      await put(queue, "a");
      const id = leaseId();
      await settle(queue, await take(queue, 4, id), ACK);
      await put(queue, "b");
      same(await take(other, 4, id), [], "the late copy");
      same(ids(await take(other)), ["b"], "a new claim");
    },
  },
  {
    name: "claim: a late copy takes nothing once the lease ran out and another took the jobs",
    needs: [],
    async run({ open, shortMs, passShort }) {
      const { queue, other } = await open({ leaseMs: shortMs });
      await put(queue, "a");
      const id = leaseId();
      await take(queue, 4, id);
      await passShort();
      const taken = await take(other);
      same(ids(taken), ["a"], "the other's claim");
      await put(queue, "b");
      same(await take(queue, 4, id), [], "the late copy");
      same(await settle(other, taken, ACK), ["done"], "the other's settling");
      same(ids(await take(queue)), ["b"], "a new claim");
    },
  },
  {
    name: "claim: a late copy of a claim that got nothing takes nothing",
    needs: [],
    async run({ queue }) {
      const id = leaseId();
      same(await take(queue, 4, id), [], "the claim");
      await put(queue, "a");
      same(await take(queue, 4, id), [], "its late copy");
      same(ids(await take(queue)), ["a"], "a new claim");
    },
  },
  {
    name: "claim: a lease id is remembered for a minute after its end",
    needs: ["simulatedTime"],
    async run({ queue, passMs }) {
      await put(queue, "a");
      const id = leaseId();
      const first = await take(queue, 4, id);
      await settle(queue, first, ACK);
      await put(queue, "b");
      for (let second = 0; second < 59; second += 1) {
        await passMs(1000);
        await claim(queue, 1, leaseId()).then((reply) =>
          settle(queue, reply.deliveries, { kind: "release" }),
        );
      }
      same(await take(queue, 4, id), [], "the late copy");
      same(await settle(queue, first, ACK), ["done"], "the settling sent again");
    },
  },
  {
    name: "claim: copies sent at the same time take one set of jobs",
    needs: [],
    async run({ queue, other }) {
      await put(queue, ...idsOf("a", 8));
      const id = leaseId();
      const replies = await Promise.all([take(queue, 3, id), take(queue, 3, id), take(queue, 3, id)]);
      for (const reply of replies) same(ids(reply), ["a1", "a2", "a3"], "each copy's reply");
      same(ids(await take(other)), ["a4", "a5", "a6", "a7", "a8"], "what is left");
    },
  },
  {
    name: "claim: copies sent at the same time over two connections take one set of jobs",
    needs: ["fenced"],
    async run({ queue, other }) {
      await put(queue, ...idsOf("a", 8));
      const id = leaseId();
      const replies = await Promise.all([
        take(queue, 3, id),
        take(other, 3, id),
        take(queue, 3, id),
        take(other, 3, id),
      ]);
      for (const reply of replies) same(ids(reply), ["a1", "a2", "a3"], "each copy's reply");
      same(ids(await take(queue)), ["a4", "a5", "a6", "a7", "a8"], "what is left");
    },
  },
  {
    name: "claim: two connections at work together take every job once",
    needs: [],
    async run({ queue, other }) {
      const wanted = idsOf("a", 240);
      await put(queue, ...wanted.slice(0, 120));
      await put(other, ...wanted.slice(120));
      const workers = [queue, other, queue, other, queue, other].map(async (connection, i) => {
        const mine: string[] = [];
        for (;;) {
          const deliveries = await take(connection, 3 + i);
          if (deliveries.length === 0) return mine;
          mine.push(...ids(deliveries));
          const results = await settle(connection, deliveries, ACK);
          that(
            results.every((result) => result === "done"),
            "each was held by who took it",
          );
        }
      });
      const taken = (await Promise.all(workers)).flat();
      same(taken.length, wanted.length, "how many were taken");
      same(taken.sort(), wanted.sort(), "what was taken");
    },
  },
  {
    name: "claim: max outside of 1 to maxBatch is refused, and takes nothing",
    needs: [],
    async run({ queue }) {
      await put(queue, "a");
      const { maxBatch } = queue.limits;
      if (Number.isFinite(maxBatch)) {
        await rejects(claim(queue, maxBatch + 1), "RangeError", ["max", String(maxBatch)], "maxBatch + 1");
      }
      await rejects(claim(queue, 0), "RangeError", ["max"], "0");
      await rejects(claim(queue, 1.5), "RangeError", ["max"], "1.5");
      await rejects(claim(queue, Number.NaN), "RangeError", ["max"], "NaN");
      same(ids(await take(queue)), ["a"], "a sound claim");
    },
  },
  {
    name: "claim: a batch of maxBatch is served whole",
    needs: [],
    async run({ queue }) {
      const { maxBatch, maxEnqueue } = queue.limits;
      const wanted = idsOf("a", Math.min(maxBatch, 1000) + 5);
      for (let at = 0; at < wanted.length; at += maxEnqueue) {
        await put(queue, ...wanted.slice(at, at + maxEnqueue));
      }
      const deliveries = await take(queue, Math.min(maxBatch, 1000));
      same(ids(deliveries), wanted.slice(0, -5), "the batch");
      const results = await settle(queue, deliveries, ACK);
      that(
        results.length === deliveries.length && results.every((one) => one === "done"),
        "all were settled",
      );
      same(ids(await drain(queue)), wanted.slice(-5), "the rest");
    },
  },
  {
    name: "claim: short of jobs, it tells when the next held one could come back",
    needs: ["fenced"],
    async run({ queue, other, passMs }) {
      await put(queue, "a");
      await take(queue);
      await passMs(20);
      const id = leaseId();
      // A copy of it is asked too: whoever got no other answer sleeps by that one.
      for (const copy of [0, 1]) {
        const { deliveries, nextDueMs } = await claim(other, 4, id);
        same(deliveries, [], "nothing is there");
        that(
          nextDueMs !== undefined && nextDueMs > LONG_MS / 2 && nextDueMs <= LONG_MS - 15,
          `nextDueMs is ${nextDueMs} of copy ${copy}`,
        );
      }
      await put(queue, "b");
      same((await claim(other, 4, id)).nextDueMs, 0, "nextDueMs of a copy, when something is there");
    },
  },
];
