import { type Delivery, MAX_ERROR_LENGTH, type Verdict } from "../../../src/broker.ts";
import type { ConformanceCase } from "../../support/conformance.ts";
import { same, that } from "../../support/conformance_assert.ts";
import {
  ACK,
  DEAD,
  drain,
  ids,
  idsOf,
  leaseId,
  put,
  RELEASE,
  RETRY,
  settle,
  take,
} from "../../support/conformance_steps.ts";

/** Settling: each verdict, alone and mixed, sent twice, and after the lease was lost. */
export const settleCases: readonly ConformanceCase[] = [
  {
    name: "settle: an acked job is gone",
    needs: [],
    async run({ queue }) {
      await put(queue, "a");
      same(await settle(queue, await take(queue), ACK), ["done"], "the result");
      same(await take(queue), [], "a claim afterwards");
    },
  },
  {
    name: "settle: nothing to settle is answered with nothing",
    needs: [],
    async run({ queue }) {
      same([...(await queue.settle([]))], [], "the results");
    },
  },
  {
    name: "settle: an ack sent twice is done both times",
    needs: [],
    async run({ queue }) {
      await put(queue, "a", "b");
      const deliveries = await take(queue, 2);
      same(await settle(queue, deliveries.slice(0, 1), ACK), ["done"], "the first");
      same(await settle(queue, deliveries.slice(0, 1), ACK), ["done"], "the second, its lease still held");
      same(await settle(queue, deliveries, ACK), ["done", "done"], "with the rest of the lease");
      same(await settle(queue, deliveries, ACK), ["done", "done"], "its lease ended");
    },
  },
  {
    name: "settle: an ack sent again over another connection is done",
    needs: ["fenced"],
    async run({ queue, other }) {
      await put(queue, "a", "b");
      const deliveries = await take(queue, 2);
      same(await settle(queue, deliveries.slice(0, 1), ACK), ["done"], "the first");
      same(await settle(other, deliveries, ACK), ["done", "done"], "with the rest of the lease");
      same(await settle(other, deliveries, ACK), ["done", "done"], "its lease ended");
    },
  },
  {
    name: "settle: one delivery named twice in a request counts once",
    needs: [],
    async run({ queue }) {
      await put(queue, "a");
      const deliveries = await take(queue);
      same(await settle(queue, [...deliveries, ...deliveries], RETRY), ["done", "done"], "the results");
      same(ids(await drain(queue)), ["a"], "what comes afterwards");
    },
  },
  {
    name: "settle: released jobs come back at the head, in their order, no attempt charged",
    needs: [],
    async run({ queue, other }) {
      await put(queue, "a", "b", "c", "d");
      const deliveries = await take(queue, 3);
      same(await settle(queue, deliveries, RELEASE), ["done", "done", "done"], "the results");
      const again = await take(other);
      same(ids(again), ["a", "b", "c", "d"], "the next claim");
      same(
        again.map((one) => one.attempt),
        [1, 1, 1, 1],
        "their attempts",
      );
      that(!again.some((one) => one.suspect), "none is suspect");
    },
  },
  {
    name: "settle: released one request after another, the last first, jobs keep their order",
    needs: [],
    async run({ queue }) {
      await put(queue, "a", "b", "c", "d");
      const deliveries = await take(queue, 3);
      await settle(queue, deliveries.slice(2), RELEASE);
      await settle(queue, deliveries.slice(0, 2), RELEASE);
      same(ids(await take(queue)), ["a", "b", "c", "d"], "the next claim");
    },
  },
  {
    name: "settle: a release sent twice takes nothing from the next holder",
    needs: [],
    async run({ queue, other }) {
      await put(queue, "a");
      const first = await take(queue);
      same(await settle(queue, first, RELEASE), ["done"], "the first");
      const second = await take(other);
      same(ids(second), ["a"], "the next claim");
      same(await settle(queue, first, RELEASE), ["done"], "the second");
      same(await take(queue), [], "it was not given back again");
      same(await settle(other, second, ACK), ["done"], "the next holder's ack");
      same(await take(queue), [], "a claim afterwards");
    },
  },
  {
    name: "settle: a retry without delay joins the tail, its attempt charged",
    needs: [],
    async run({ queue }) {
      await put(queue, "a", "b");
      same(await settle(queue, await take(queue, 1), RETRY), ["done"], "the result");
      const again = await take(queue);
      same(ids(again), ["b", "a"], "the next claim");
      same(
        again.map((one) => one.attempt),
        [1, 2],
        "their attempts",
      );
    },
  },
  {
    name: "settle: attempts are counted over many retries",
    needs: [],
    async run({ queue, other }) {
      await put(queue, "a");
      for (let attempt = 1; attempt <= 12; attempt += 1) {
        const connection = attempt % 2 ? queue : other;
        const deliveries = await take(connection);
        same(
          deliveries.map((one) => one.attempt),
          [attempt],
          "the attempt",
        );
        await settle(connection, deliveries, {
          kind: "retry",
          delayMs: 0,
          error: `attempt ${attempt} failed`,
        });
      }
    },
  },
  {
    name: "settle: a retry sent twice takes nothing from the next holder",
    needs: [],
    async run({ queue, other }) {
      await put(queue, "a");
      const first = await take(queue);
      same(await settle(queue, first, RETRY), ["done"], "the first");
      const second = await take(other);
      same(await settle(queue, first, RETRY), ["done"], "the second");
      same(await take(queue), [], "it was not put back again");
      same(await settle(other, second, ACK), ["done"], "the next holder's ack");
      same(await take(queue), [], "a claim afterwards");
    },
  },
  {
    name: "settle: a delayed retry comes after its delay, not before",
    needs: ["delay"],
    async run({ queue, shortMs, passShort }) {
      await put(queue, "a", "b");
      await settle(queue, await take(queue, 1), { kind: "retry", delayMs: shortMs });
      same(ids(await drain(queue)), ["b"], "before");
      await passShort();
      const again = await take(queue);
      same(ids(again), ["a"], "after");
      same(again[0]?.attempt, 2, "its attempt");
    },
  },
  {
    name: "settle: a dead letter is kept with its reason and comes no more",
    needs: ["peek"],
    async run({ queue, other }) {
      await put(queue, "a", "b");
      const error = 'it broke:\n  at line 3 | "quoted" \u{1F4A5} ü';
      same(await settle(queue, await take(queue, 1), { kind: "dead", error }), ["done"], "the result");
      same(ids(await drain(queue)), ["b"], "what still comes");
      const dead = await other.peek!("dead", 10);
      same(ids(dead), ["a"], "the dead letters");
      same(dead[0]?.error, error, "the reason");
      same(dead[0]?.attempts, 1, "the attempts");
      that(typeof dead[0]?.diedAt === "number", "when it died is known");
    },
  },
  {
    name: "settle: a dead letter that was not run counts the attempts it had, and comes back with none",
    needs: ["peek", "redrive"],
    async run({ queue, other }) {
      await put(queue, "a");
      await settle(queue, await take(queue), RETRY);
      await settle(queue, await take(queue), RETRY);
      const third = await take(queue);
      same(third[0]?.attempt, 3, "the attempt that its claim charged");
      const verdict: Verdict = { kind: "dead", error: "no attempt is left", attempts: 2 };
      same(await settle(queue, third, verdict), ["done"], "the result");
      same((await other.peek!("dead", 1))[0]?.attempts, 2, "the attempts");
      await other.redrive!({ limit: 1 });
      same((await take(queue))[0]?.attempt, 1, "the attempt once it was put back");
    },
  },
  {
    name: "settle: a dead letter sent twice is one",
    needs: ["peek"],
    async run({ queue }) {
      await put(queue, "a");
      const deliveries = await take(queue);
      same(await settle(queue, deliveries, DEAD), ["done"], "the first");
      same(await settle(queue, deliveries, DEAD), ["done"], "the second");
      same((await queue.peek!("dead", 10)).length, 1, "how many dead letters there are");
    },
  },
  {
    name: "settle: an error text too long is cut",
    needs: ["peek"],
    async run({ queue }) {
      await put(queue, "a");
      await settle(queue, await take(queue), { kind: "dead", error: `why ${"x".repeat(5000)}` });
      const [dead] = await queue.peek!("dead", 1);
      that(dead?.error?.startsWith("why xxx") === true, "its beginning is kept");
      that((dead.error?.length ?? 0) <= MAX_ERROR_LENGTH, `it is ${dead.error?.length} long`);
    },
  },
  {
    name: "settle: each delivery of a request gets its own verdict",
    needs: ["sizes"],
    async run({ queue }) {
      await put(queue, "a", "b", "c", "d", "e");
      const [a, b, c, d] = (await take(queue, 4)) as [Delivery, Delivery, Delivery, Delivery];
      const results = await queue.settle([
        { delivery: d, verdict: RELEASE },
        { delivery: b, verdict: DEAD },
        { delivery: a, verdict: ACK },
        { delivery: c, verdict: RETRY },
      ]);
      same([...results], ["done", "done", "done", "done"], "the results");
      same(await queue.sizes!(), { ready: 3, delayed: 0, held: 0, dead: 1, paused: false }, "the sizes");
      same(ids(await take(queue)), ["d", "e", "c"], "the next claim");
    },
  },
  {
    name: "settle: verdicts under several leases travel together",
    needs: [],
    async run({ queue }) {
      await put(queue, ...idsOf("a", 6));
      const one = await take(queue, 2);
      const two = await take(queue, 2);
      const three = await take(queue, 2);
      const mixed = [one[0], two[0], three[0], two[1], one[1], three[1]] as Delivery[];
      same(
        await settle(queue, mixed, ACK),
        mixed.map(() => "done"),
        "the results",
      );
      same(await take(queue), [], "a claim afterwards");
    },
  },
  {
    name: "settle: one lost delivery does not hinder the others",
    needs: [],
    async run({ open, shortMs, passShort }) {
      const { queue, other } = await open({ leaseMs: shortMs });
      await put(queue, "a");
      const lost = await take(queue);
      await passShort();
      same(ids(await take(other)), ["a"], "the other's claim");
      await put(queue, "b", "c");
      const [b, c] = (await take(queue)) as [Delivery, Delivery];
      const results = await queue.settle([
        { delivery: b, verdict: ACK },
        { delivery: lost[0] as Delivery, verdict: ACK },
        { delivery: c, verdict: ACK },
      ]);
      same([...results], ["done", "lost", "done"], "the results");
    },
  },
  {
    name: "settle: after the lease was lost no verdict changes anything",
    needs: ["sizes"],
    async run({ open, shortMs, passShort, passMs }) {
      const { queue, other } = await open({ leaseMs: shortMs });
      await put(queue, "a");
      const lost = await take(queue);
      await passShort();
      const held = await take(other);
      same(ids(held), ["a"], "the other's claim");
      for (const verdict of [ACK, RELEASE, RETRY, DEAD]) {
        same(await settle(queue, lost, verdict), ["lost"], `${verdict.kind} under the lost lease`);
      }
      same(await take(queue), [], "nothing came back");
      same(await settle(other, held, ACK), ["done"], "the holder's ack");
      await passMs(0);
      same(await other.sizes!(), { ready: 0, delayed: 0, held: 0, dead: 0, paused: false }, "the sizes");
      same(await settle(queue, lost, ACK), ["lost"], "and it stays lost");
    },
  },
  {
    name: "settle: what was settled before the rest of its lease was lost stays done",
    needs: [],
    async run({ open, shortMs, passShort }) {
      const { queue, other } = await open({ leaseMs: shortMs });
      await put(queue, "a", "b");
      const deliveries = await take(queue);
      same(await settle(queue, deliveries.slice(0, 1), ACK), ["done"], "in time");
      await passShort();
      same(ids(await take(other)), ["b"], "the other's claim");
      same(await settle(queue, deliveries, ACK), ["done", "lost"], "both sent again");
    },
  },
  {
    name: "settle: past its deadline a lease is held until another claim takes its jobs back",
    needs: ["fenced"],
    async run({ open, shortMs, passShort }) {
      const { queue } = await open({ leaseMs: shortMs });
      await put(queue, "a");
      const deliveries = await take(queue);
      await passShort();
      same(await settle(queue, deliveries, ACK), ["done"], "the late ack");
      same(await take(queue), [], "a claim afterwards");
    },
  },
  {
    name: "settle: a lease that never was is lost",
    needs: [],
    async run({ queue }) {
      await put(queue, "a");
      const [delivery] = (await take(queue)) as [Delivery];
      same(await settle(queue, [{ ...delivery, leaseId: leaseId() }], ACK), ["lost"], "the result");
      same(await settle(queue, [delivery], ACK), ["done"], "the true one");
    },
  },
  {
    name: "settle: part of a lease leaves the rest held",
    needs: [],
    async run({ queue, other }) {
      await put(queue, "a", "b", "c");
      const deliveries = await take(queue);
      same(await settle(queue, deliveries.slice(0, 2), ACK), ["done", "done"], "the first part");
      same(await take(other), [], "others get nothing of the rest");
      same(await queue.renew([deliveries[0]?.leaseId as string]), ["held"], "the lease is renewed");
      same(await settle(queue, deliveries.slice(2), RELEASE), ["done"], "the second part");
      same(ids(await take(other)), ["c"], "the rest comes back");
    },
  },
];
